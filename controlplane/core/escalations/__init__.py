"""Escalations: repeated notifications of an event until somebody acknowledges it."""
