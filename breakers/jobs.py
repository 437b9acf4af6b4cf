"""The kinds of jobs of this app."""

from breakers.dead_letters.bulk import job

__all__ = ["job"]
