"""A backup in one file: made, checked, and restored so that services take the restored state."""
