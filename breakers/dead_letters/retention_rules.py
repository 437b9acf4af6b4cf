"""Retention of the tables of dead letters: the rules registered elsewhere, and lasting tables."""

# Each of these registers rules beside what it does.
from controlplane.core.retention import lasting

from .monitoring import retention_rules  # noqa: F401
from .removals import archive  # noqa: F401

lasting(
    "A mirror of what lies in Redis: it goes with it. DLQ_KEPT_DAYS says how long letters lie.",
    "breakers.Letter",
    "breakers.LetterStream",
    "breakers.LetterServer",
)
lasting("Who retried what in bulk belongs to the proof; jobs of that kind stay.", "breakers.Replay")
