"""HTTP API of dead letters."""
