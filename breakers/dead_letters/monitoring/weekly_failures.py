"""Most frequent errors of a period, by group and day, including letters removed since."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from django.db.models import Sum

from breakers.dead_letters.models import GroupDay, LetterGroup
from breakers.dead_letters.sources import configured_sources


@dataclass(frozen=True)
class GroupFailures:
    """Arrivals of a stream's error group, in total and by day (UTC)."""

    server: str
    stream: str
    fingerprint: str
    error_type: str
    pattern: str
    arrived: int
    days: Mapping[date, int]


def list_most_failed(start: datetime, end: datetime, most: int) -> list[GroupFailures]:
    """Return up to `most` groups with the most arrivals, the largest first.

    Whole UTC days are counted, from the day of `start` to the last day that begins before `end`.
    """
    last_day = (end - timedelta(microseconds=1)).astimezone(UTC).date()
    days = GroupDay.objects.filter(day__gte=start.astimezone(UTC).date(), day__lte=last_day)
    served = days.filter(group__stream__server__in=configured_sources().servers)
    summed = served.values("group").annotate(total=Sum("arrived")).order_by("-total", "group")
    totals = {one["group"]: int(one["total"]) for one in summed[:most]}
    groups: dict[int, LetterGroup] = {}
    by_day: dict[int, dict[date, int]] = {pk: {} for pk in totals}
    shown = days.filter(group__in=totals).select_related("group__stream")
    for row in shown.order_by("day"):
        groups[row.group_id] = row.group
        by_day[row.group_id][row.day] = row.arrived
    return [
        GroupFailures(
            server=group.stream.server,
            stream=group.stream.name,
            fingerprint=group.fingerprint,
            error_type=group.error_type,
            pattern=group.pattern,
            arrived=totals[pk],
            days=by_day[pk],
        )
        for pk in totals
        if (group := groups.get(pk)) is not None
    ]
