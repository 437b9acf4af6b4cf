"""Monitoring of streams: discovery, sampling, the index, gaps and alarms."""
