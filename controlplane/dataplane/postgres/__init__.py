"""The data plane's own statements to PostgreSQL."""
