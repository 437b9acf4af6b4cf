"""The kinds of jobs of dead letters."""

from breakers.dead_letters.bulk import job

__all__ = ["job"]
