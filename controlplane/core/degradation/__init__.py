"""The installation's degradation: its level, its causes, and the functions that fail or work."""
