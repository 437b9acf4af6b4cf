"""The supervisor of PostgreSQL, Redis and the application's processes; works without Django."""
