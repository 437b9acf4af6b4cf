"""Notifying people and programs: targets, routes, escalation, delivery and transports."""
