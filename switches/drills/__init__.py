"""Drills: a switch engaged and released for real, for the instances that are marked for it."""
