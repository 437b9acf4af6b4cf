"""Monitoring of dead-letter streams: discovery, sampling, index of letters, its gaps, alarms."""
