"""Probes of the registered services: TCP connections or HTTP requests to their `probe_url`."""
