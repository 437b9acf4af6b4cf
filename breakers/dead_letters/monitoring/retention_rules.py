"""Retention rules of depths, gaps, and groups that have been empty for long."""

from datetime import datetime, timedelta

from controlplane.core import retention
from controlplane.core.retention import RETENTION_RULES, RetentionRule

DEPTHS = RetentionRule(
    name="letter-depths",
    model="breakers.DepthMinute",
    period=timedelta(days=3),
    since="minute",
    order="minute",
    bounds=(3, 90),
    tick="dlq.purge",
    why="How many dead letters lay where, by the minute.",
)
GAPS = RetentionRule(
    name="letter-gaps",
    model="breakers.Gap",
    period=timedelta(days=90),
    since="noticed_at",
    bounds=(8, 3650),
    tick="dlq.purge",
    why="How many letters vanished without us, and when that was noticed.",
)
GROUP_DAYS = RetentionRule(
    name="letter-days",
    model="breakers.GroupDay",
    period=timedelta(days=90),
    where="day < %(before)s::timestamptz::date",
    since="day",
    order="day",
    bounds=(8, 3650),
    tick="dlq.purge",
    why="How many letters failed alike on a day.",
)
# A group's row is locked by whoever adds a letter or a day to it.
GROUPS = RetentionRule(
    name="letter-groups",
    model="breakers.LetterGroup",
    period=timedelta(days=90),
    where="last_at < %(before)s"
    " AND NOT EXISTS (SELECT FROM breakers_letter WHERE group_id = it.id)"
    " AND NOT EXISTS (SELECT FROM breakers_groupday WHERE group_id = it.id)",
    since="last_at",
    bounds=(8, 3650),
    tick="dlq.purge",
    why="What failed alike.",
    exempt="Those with letters, or with days that are kept.",
)
RULES = (DEPTHS, GAPS, GROUP_DAYS, GROUPS)

RETENTION_RULES.register(*RULES)


def purge(now: datetime, *, at_once: int, most: int) -> int:
    """Delete up to `most` old rows of each kind, `at_once` in one transaction; return how many."""
    return retention.purge(RULES, now, at_once=at_once, most=most)
