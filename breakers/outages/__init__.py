"""Automatic actions when the breakers of a dependency with an outage policy open."""
