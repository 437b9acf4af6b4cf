"""Retention rules of the archive, stream depths, gaps and error groups."""

from datetime import datetime, timedelta
from functools import partial

from controlplane.core import retention
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
    why="Retried and discarded letters, so that they can be restored.",
    exempt="Removals in progress.",
)
DEPTHS = RetentionRule(
    name="letter-depths",
    model="breakers.DepthMinute",
    period=timedelta(days=3),
    since="minute",
    order="minute",
    bounds=(3, 90),
    tick="dlq.purge",
    why="Depth of each stream by the minute.",
)
_long_term = partial(RetentionRule, period=timedelta(days=90), bounds=(8, 3650), tick="dlq.purge")
GAPS = _long_term(
    name="letter-gaps",
    model="breakers.Gap",
    since="noticed_at",
    why="Letters removed by other Redis clients, and when that was noticed.",
)
GROUP_DAYS = _long_term(
    name="letter-days",
    model="breakers.GroupDay",
    where="day < %(before)s::timestamptz::date",
    since="day",
    order="day",
    why="Letters of each error group by day.",
)
# Adding a letter or a day to a group locks the group's row.
GROUPS = _long_term(
    name="letter-groups",
    model="breakers.LetterGroup",
    where="last_at < %(before)s"
    " AND NOT EXISTS (SELECT FROM breakers_letter WHERE group_id = it.id)"
    " AND NOT EXISTS (SELECT FROM breakers_groupday WHERE group_id = it.id)",
    since="last_at",
    why="Error groups.",
    exempt="Groups with letters, or with kept daily counts.",
)
PURGED = (DEPTHS, GAPS, GROUP_DAYS, GROUPS)

RETENTION_RULES.register(ARCHIVE, *PURGED)

keep_permanently(
    "An index of the letters in Redis, removed with them. DLQ_KEPT_DAYS sets how long letters are"
    " kept.",
    "breakers.Letter",
    "breakers.LetterStream",
    "breakers.LetterServer",
)
keep_permanently("Bulk jobs are kept as evidence of who retried what.", "breakers.Replay")


def purge(now: datetime, *, at_once: int, most: int = 1_000_000) -> int:
    """Delete up to `most` expired rows per table, `at_once` per transaction; return how many."""
    return retention.purge(PURGED, now, at_once=at_once, most=most)
