"""Breaker states, current and past: by instance, by dependency and by minute."""
