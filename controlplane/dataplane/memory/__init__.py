"""Data held in memory: snapshots, policies, flags and credentials; also held requests."""
