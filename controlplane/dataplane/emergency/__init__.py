"""Emergency orders: accepted, stored and exchanged without PostgreSQL and Redis."""
