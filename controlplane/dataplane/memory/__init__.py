"""Data held in memory: snapshots, policies, flags, credentials, and held requests."""
