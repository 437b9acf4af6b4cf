"""The supervised tree: PostgreSQL, Redis and the application's processes; without Django."""
