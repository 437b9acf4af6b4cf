"""Converts documents of the API to cells of tables. Pure."""
