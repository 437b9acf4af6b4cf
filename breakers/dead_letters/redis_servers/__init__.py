"""The Redis servers of dead letters: clients, scripts, reading and sampling."""
