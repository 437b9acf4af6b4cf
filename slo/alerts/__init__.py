"""Alerts: opening and resolving them, notifications, and the actions they trigger."""
