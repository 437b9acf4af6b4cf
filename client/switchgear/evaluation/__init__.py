"""Evaluation of switches against the snapshot in memory, without I/O and without waiting."""
