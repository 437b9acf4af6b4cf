"""The installation's degradation: its level, causes, and the functions that still work."""
