"""Schedule of an on-call rotation. Pure.

Hand-overs take place at the same local time every `rotation_days` days. A turn during which the
clocks change is an hour shorter or longer.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

USUAL_DAYS = 7
MAX_DAYS = 366


@dataclass(frozen=True)
class DutyTurn:
    """A turn on duty: the index of the rotation's member, and its start and end in UTC."""

    member: int
    since: datetime
    until: datetime


def find_turn(
    members: int, rotation_days: int, starts_at: datetime, zone: tzinfo, now: datetime
) -> DutyTurn | None:
    """Return the turn on duty at `now`; None if the rotation has no members.

    The first member's turn begins at `starts_at`, and is returned for earlier times too.
    """
    if members < 1:
        return None
    local = starts_at.astimezone(zone)
    elapsed = now.astimezone(zone).date() - local.date()
    number = elapsed.days // rotation_days
    if now < hand_over(local, number, rotation_days):
        number -= 1
    if number < 0:
        return DutyTurn(0, starts_at, hand_over(local, 1, rotation_days))
    return DutyTurn(
        number % members,
        hand_over(local, number, rotation_days),
        hand_over(local, number + 1, rotation_days),
    )


def hand_over(start: datetime, number: int, rotation_days: int) -> datetime:
    """Return the time (UTC) of hand-over `number`; number 0 is the local time `start`.

    A local time skipped by a clock change moves forward: 02:30 becomes 03:30 that day. If a local
    time occurs twice, the first one is used.
    """
    wall = (start + timedelta(days=number * rotation_days)).replace(fold=0)
    return wall.astimezone(UTC)
