"""Groups of letters with the same error: those in a stream, and the most frequent ones."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from django.db.models import Sum

from breakers.dead_letters.models import GroupDay, LetterGroup, LetterStream
from breakers.dead_letters.sources import configured_sources
from controlplane.core.sql import fetch_all

MAX_GROUPS = 500

_GROUPS = """
    SELECT known.fingerprint, known.error_type, known.pattern, known.sample, lying.count,
           lying.failed_again, lying.first_at, lying.last_at, lying.oldest, lying.newest
    FROM (
        SELECT group_id, count(*) AS count, count(*) FILTER (WHERE retries > 0) AS failed_again,
               min(failed_at) AS first_at, max(failed_at) AS last_at,
               min(position) AS oldest, max(position) AS newest
        FROM breakers_letter
        WHERE stream_id = %(stream)s
        GROUP BY group_id
    ) lying JOIN breakers_lettergroup known ON known.id = lying.group_id
    ORDER BY lying.count DESC, lying.last_at DESC, known.fingerprint LIMIT %(most)s
"""


@dataclass(frozen=True)
class ErrorGroup:
    """Letters in a stream with the same error fingerprint.

    `first_at` and `last_at` are the times of the first and last failure. `oldest` and `newest` are
    the positions of the first and last letter in the stream. `failed_again` counts those that were
    retried before. `pattern` is the error with its
    varying parts masked, `sample` the error of one letter.
    """

    fingerprint: str
    error_type: str
    pattern: str
    sample: str
    count: int
    failed_again: int
    first_at: datetime
    last_at: datetime
    oldest: str
    newest: str


def list_groups(stream: LetterStream, *, most: int = MAX_GROUPS) -> list[ErrorGroup]:
    """Return up to `most` error groups of a stream, the largest first."""
    return [ErrorGroup(*row) for row in fetch_all(_GROUPS, {"stream": stream.pk, "most": most})]


@dataclass(frozen=True)
class GroupFailures:
    """Numbers of letters that arrived in an error group, in total and by day (UTC)."""

    group: LetterGroup
    arrived: int
    days: Mapping[date, int]


def list_most_failed(
    start: datetime, end: datetime, most: int, selected: Collection[int] | None = None
) -> list[GroupFailures]:
    """Return up to `most` error groups in which the most letters arrived, the largest first.

    Whole UTC days are counted, from the day of `start` to the last day that begins before `end`.
    `selected` are ids of streams, None selects all.
    """
    last_day = (end - timedelta(microseconds=1)).astimezone(UTC).date()
    days = GroupDay.objects.filter(day__gte=start.astimezone(UTC).date(), day__lte=last_day)
    served = days.filter(group__stream__server__in=configured_sources().servers)
    if selected is not None:
        served = served.filter(group__stream__in=selected)
    summed = served.values("group").annotate(total=Sum("arrived")).order_by("-total", "group")
    totals = {one["group"]: int(one["total"]) for one in summed[:most]}
    groups: dict[int, LetterGroup] = {}
    by_day: dict[int, dict[date, int]] = {pk: {} for pk in totals}
    shown = days.filter(group__in=totals).select_related("group__stream")
    for row in shown.order_by("day"):
        groups[row.group_id] = row.group
        by_day[row.group_id][row.day] = row.arrived
    return [GroupFailures(groups[pk], totals[pk], by_day[pk]) for pk in totals if pk in groups]
