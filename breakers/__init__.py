"""Services, their dependencies, and the circuit breakers between them."""
