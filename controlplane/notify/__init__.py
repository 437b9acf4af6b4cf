"""Notifications: targets, routes, escalations, delivery and transports."""
