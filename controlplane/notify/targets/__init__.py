"""Targets of notifications (people, channels, rotations, escalations) and their routes."""
