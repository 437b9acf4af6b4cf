"""Drills: rehearsals that engage and release a switch only on instances marked for drills."""
