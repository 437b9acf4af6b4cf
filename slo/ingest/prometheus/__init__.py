"""Counters read from the user's own Prometheus, minute by minute."""
