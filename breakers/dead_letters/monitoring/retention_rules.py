"""What is kept of dead letters for a while only: depths by the minute, gaps, groups long empty."""

from datetime import datetime, timedelta

from controlplane.core import retention

RULES = (
    retention.rule(
        retention.Rule(
            name="letter-depths",
            model="breakers.DepthMinute",
            kept=timedelta(days=3),
            where="minute < %(before)s",
            since="minute",
            order="minute",
            bounds=(3, 90),
            tick="dlq.purge",
            why="How many dead letters lay where, by the minute.",
        )
    ),
    retention.rule(
        retention.Rule(
            name="letter-gaps",
            model="breakers.Gap",
            kept=timedelta(days=90),
            where="noticed_at < %(before)s",
            since="noticed_at",
            bounds=(8, 3650),
            tick="dlq.purge",
            why="How many letters vanished without us, and when that was noticed.",
        )
    ),
    retention.rule(
        retention.Rule(
            name="letter-days",
            model="breakers.GroupDay",
            kept=timedelta(days=90),
            where="day < %(before)s::timestamptz::date",
            since="day",
            order="day",
            bounds=(8, 3650),
            tick="dlq.purge",
            why="How many letters failed alike on a day.",
        )
    ),
    # Whoever adds a letter or a day holds the group's row until it is there.
    retention.rule(
        retention.Rule(
            name="letter-groups",
            model="breakers.LetterGroup",
            kept=timedelta(days=90),
            where="last_at < %(before)s"
            " AND NOT EXISTS (SELECT FROM breakers_letter WHERE group_id = it.id)"
            " AND NOT EXISTS (SELECT FROM breakers_groupday WHERE group_id = it.id)",
            since="last_at",
            bounds=(8, 3650),
            tick="dlq.purge",
            why="What failed alike.",
            but="Those with letters, or with days that are kept.",
        )
    ),
)


def purge(now: datetime, *, at_once: int, most: int) -> int:
    """Delete up to `most` old rows of each kind, `at_once` in one transaction; returns how many."""
    return retention.purge(RULES, now, at_once=at_once, most=most)
