"""Drills: a switch engaged and released for the instances marked for drills only."""
