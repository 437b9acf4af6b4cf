"""What is kept of dead letters for a while only: depths by the minute, gaps, groups long empty."""

from datetime import datetime, timedelta

from controlplane.core.forgetting import forget

MINUTES_KEPT = timedelta(days=3)
GAPS_KEPT = timedelta(days=90)
GROUPS_KEPT = timedelta(days=90)

_FORGET = (
    (
        "DELETE FROM breakers_depthminute WHERE id = ANY(ARRAY("
        " SELECT id FROM breakers_depthminute WHERE minute < %(before)s"
        " ORDER BY minute LIMIT %(most)s FOR UPDATE SKIP LOCKED))",
        MINUTES_KEPT,
    ),
    (
        "DELETE FROM breakers_gap WHERE id = ANY(ARRAY("
        " SELECT id FROM breakers_gap WHERE noticed_at < %(before)s"
        " LIMIT %(most)s FOR UPDATE SKIP LOCKED))",
        GAPS_KEPT,
    ),
    (
        "DELETE FROM breakers_groupday WHERE id = ANY(ARRAY("
        " SELECT id FROM breakers_groupday WHERE day < %(before)s::timestamptz::date"
        " ORDER BY day LIMIT %(most)s FOR UPDATE SKIP LOCKED))",
        GROUPS_KEPT,
    ),
    # Whoever adds a letter or a day holds the group's row until it is there.
    (
        "DELETE FROM breakers_lettergroup WHERE id = ANY(ARRAY("
        " SELECT id FROM breakers_lettergroup known WHERE last_at < %(before)s"
        " AND NOT EXISTS (SELECT FROM breakers_letter WHERE group_id = known.id)"
        " AND NOT EXISTS (SELECT FROM breakers_groupday WHERE group_id = known.id)"
        " LIMIT %(most)s FOR UPDATE SKIP LOCKED))",
        GROUPS_KEPT,
    ),
)


def purge(now: datetime, *, at_once: int, most: int) -> int:
    """Delete up to `most` old rows of each kind, `at_once` in one statement; returns how many."""
    return forget(_FORGET, now, at_once=at_once, most=most)
