"""E-mail through the configured mail server."""
