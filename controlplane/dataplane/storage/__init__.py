"""Signed copies on disk, from which a data plane starts without PostgreSQL and Redis."""
