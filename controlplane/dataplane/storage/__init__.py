"""Signed files from which a data plane starts without PostgreSQL and Redis."""
