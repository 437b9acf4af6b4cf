"""Drills: rehearsals that engage and release a switch on instances marked for drills only."""
