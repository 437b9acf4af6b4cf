"""Documents held in memory: prepared copies, credentials, policies, and listeners for changes."""
