"""Polling of Prometheus servers for counters."""
