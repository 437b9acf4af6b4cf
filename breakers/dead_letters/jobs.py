"""Job kinds of dead letters, imported to register them."""

from breakers.dead_letters.bulk import job

__all__ = ["job"]
