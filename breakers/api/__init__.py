"""API views of services, dependencies and breaker states."""
