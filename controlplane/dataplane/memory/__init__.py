"""Documents held in memory: prepared copies, credentials, policies, and who waits for changes."""
