"""Imports the job kinds of dead letters, which registers them."""

from breakers.dead_letters.bulk import job

__all__ = ["job"]
