"""Notifications: targets, routes, escalation, delivery and transports."""
