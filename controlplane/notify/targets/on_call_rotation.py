"""Whose turn it is in a rotation. Pure.

A hand-over happens at the same time on the wall every `rotation_days` days: 09:00 stays 09:00 when
the clocks change, so the turn across a change is an hour shorter or longer.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

USUAL_DAYS = 7
MAX_DAYS = 366


@dataclass(frozen=True)
class Turn:
    """The member on duty, by place from 0, from `since` until the hand-over at `until` (UTC)."""

    member: int
    since: datetime
    until: datetime


def turn(
    members: int, rotation_days: int, starts_at: datetime, zone: tzinfo, now: datetime
) -> Turn | None:
    """Who of `members` is on duty at `now`; None if there are none.

    The first member begins at `starts_at`, and is on duty before that too: somebody always is.
    """
    if members < 1:
        return None
    local = starts_at.astimezone(zone)
    elapsed = now.astimezone(zone).date() - local.date()
    number = elapsed.days // rotation_days
    if now < hand_over(local, number, rotation_days):
        number -= 1
    if number < 0:
        return Turn(0, starts_at, hand_over(local, 1, rotation_days))
    return Turn(
        number % members,
        hand_over(local, number, rotation_days),
        hand_over(local, number + 1, rotation_days),
    )


def hand_over(start: datetime, number: int, rotation_days: int) -> datetime:
    """The moment (UTC) of the hand-over `number`, counted from `start`, a local time.

    A time that the clock change skips is read as if it had not: 02:30 becomes 03:30 that day. One
    that comes twice is its first.
    """
    wall = (start + timedelta(days=number * rotation_days)).replace(fold=0)
    return wall.astimezone(UTC)
