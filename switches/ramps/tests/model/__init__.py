"""Ramps against a model: whatever is drawn happens to the real thing and to plain data alike."""
