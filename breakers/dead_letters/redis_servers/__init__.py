"""Access to the Redis servers of dead letters: clients, scripts, reads and samples."""
