"""Ramps: the staged, gated re-enable of a switch, as a durable job."""
