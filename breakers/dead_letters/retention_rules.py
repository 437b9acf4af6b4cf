"""Retention rules of the archive, stream depths, gaps and error groups."""

from controlplane.core.retention import RETENTION_RULES, RetentionRule, keep_permanently

from .removals.archive import ARCHIVED_FOR

ARCHIVE = RetentionRule(
    name="letter-archive",
    model="breakers.Departure",
    period=ARCHIVED_FOR,
    where="state IN ('done', 'gone', 'restored')"
    " AND done_at <= %(before)s AND intended_at <= %(before)s",
    since="intended_at",
    tick="dlq.retention",
    why="Letters that were retried or discarded, so that it can be undone.",
    exempt="What is on its way.",
)

RETENTION_RULES.register(ARCHIVE)

keep_permanently(
    "A mirror of what lies in Redis: it goes with it. DLQ_KEPT_DAYS says how long letters lie.",
    "breakers.Letter",
    "breakers.LetterStream",
    "breakers.LetterServer",
)
keep_permanently(
    "Who retried what in bulk belongs to the proof; jobs of that kind stay.", "breakers.Replay"
)
