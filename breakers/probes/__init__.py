"""Probes: asking services and stores, at the addresses that are registered, whether they answer."""
