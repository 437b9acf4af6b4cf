"""Versions that PostgreSQL has lost, as in a failover: what they engaged is engaged again."""
