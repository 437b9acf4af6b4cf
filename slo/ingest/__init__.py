"""Ingest of events: pushed, reported by clients, polled from Prometheus, imported."""
