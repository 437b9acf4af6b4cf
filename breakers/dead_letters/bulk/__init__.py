"""Bulk jobs over dead letters."""
