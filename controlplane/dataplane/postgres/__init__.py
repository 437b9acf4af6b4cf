"""The data plane's PostgreSQL connection and queries, without Django."""
