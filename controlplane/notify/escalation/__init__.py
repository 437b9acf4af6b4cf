"""Escalations: steps are notified one after another until somebody acknowledges."""
