"""Targets of notifications (people, channels, on-call rotations, escalations) and their routes."""
