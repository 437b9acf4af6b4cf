"""Policies of dependencies: their parameters, what they may be, and where they are read from."""
