"""Outages: what open breakers of a dependency do by themselves, where its policy says so."""
