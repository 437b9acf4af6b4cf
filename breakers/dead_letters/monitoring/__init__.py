"""Monitoring of dead letter streams: discovery, samples, the index of letters, gaps and alarms."""
