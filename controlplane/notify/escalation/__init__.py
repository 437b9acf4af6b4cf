"""Escalation: notify one step after another, until somebody acknowledges or the cause is over."""
