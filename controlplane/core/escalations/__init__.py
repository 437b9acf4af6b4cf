"""Escalations: open, acknowledge and close what somebody has to act on."""
