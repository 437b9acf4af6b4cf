"""API views of the registry and of breaker states."""
