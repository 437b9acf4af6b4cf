"""Escalations: what somebody has to acknowledge, opened and closed by the rooms it is about."""
