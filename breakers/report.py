"""Breakers and overrides in the weekly report."""

from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Q

from breakers import telling
from breakers.models import Override
from controlplane.core.canonical import timestamp
from controlplane.core.durations import readable
from controlplane.core.sections import ReportRow, ReportSection

MOST_ROWS = 50
CLOCKS_DIFFER = timedelta(hours=1)
LONG = timedelta(hours=24)
LONGEST_REASON = 300

# A trip is an opening of one that was closed; while it only tries again it stays open. Of one that
# never told of closing, its instance's last report ends what is known.
_TRIPS = """
    WITH told AS (
        SELECT dependency_id, instance, boot, from_state, to_state, at,
               min(at) FILTER (WHERE to_state = 'closed') OVER later AS closed_at,
               max(at) OVER later AS last_at
        FROM breakers_transition
        WHERE received_at >= %(received)s AND at >= %(start)s AND at < %(end)s
        WINDOW later AS (PARTITION BY dependency_id, boot ORDER BY n DESC)
    ), trips AS (
        SELECT told.dependency_id, told.instance, told.at,
               coalesce(told.closed_at, greatest(told.last_at, CASE
                   WHEN i.reported_at < %(end)s THEN i.reported_at
                   WHEN i.reported_at >= %(end)s THEN %(end)s
               END)) - told.at AS lasted
        FROM told LEFT JOIN core_instance i ON i.id = told.instance AND i.boot = told.boot
        WHERE told.to_state = 'open' AND told.from_state = 'closed'
    )
    SELECT d.caller, d.callee, d.criticality, count(*), count(DISTINCT trips.instance),
           max(trips.lasted), max(trips.at), sum(count(*)) OVER (), count(*) OVER ()
    FROM trips JOIN breakers_dependency d ON d.id = trips.dependency_id
    GROUP BY d.id ORDER BY 4 DESC, 1, 2 LIMIT %(most)s
"""


def breakers(start: datetime, end: datetime, now: datetime) -> ReportSection:
    """Which breakers opened in the week, how often, and for how long at most."""
    given: dict[str, Any] = {
        "start": start,
        "end": min(end, now),
        "received": start - CLOCKS_DIFFER,
        "most": MOST_ROWS,
    }
    with connection.cursor() as cursor:
        cursor.execute(_TRIPS, given)
        rows = cursor.fetchall()
    trips, total = (int(rows[0][-2]), rows[0][-1]) if rows else (0, 0)
    return ReportSection(
        slug="breakers",
        title="Breakers",
        summary=_trips_in_words(trips, total, rows),
        tone="warn" if any(row[2] in {"critical", "high"} for row in rows) else "good",
        columns=(
            "dependency",
            "criticality",
            "trips",
            "instances",
            "longest_open_seconds",
            "last_at",
        ),
        rows=tuple(_trip_row(*row[:7]) for row in rows),
        total=total,
    )


def overrides(start: datetime, end: datetime, now: datetime) -> ReportSection:
    """What was forced upon breakers in the week, and what of it still stands: longest first."""
    until = min(end, now)
    stood = Q(set_at__lt=end) & (Q(ended_at__isnull=True) | Q(ended_at__gte=start))
    rows = list(Override.objects.filter(stood).select_related("dependency").order_by("set_at"))
    lasted = {one.pk: min(one.ended_at or until, until) - one.set_at for one in rows}
    rows.sort(key=lambda one: (-lasted[one.pk], one.pk))
    live = [one for one in rows if one.ended_at is None]
    long = [one for one in rows if lasted[one.pk] > LONG]
    return ReportSection(
        slug="overrides",
        title="Overrides",
        summary=_overrides_in_words(len(rows), len(live), len(long)),
        tone="warn" if long else "good",
        columns=("dependency", "mode", "set_by", "set_at", "stood_seconds", "ended", "reason"),
        rows=tuple(_override_row(one, lasted[one.pk]) for one in rows[:MOST_ROWS]),
        total=len(rows),
    )


def _trip_row(
    caller: str,
    callee: str,
    criticality: str,
    trips: int,
    instances: int,
    longest: timedelta,
    last_at: datetime,
) -> ReportRow:
    cells = {
        "dependency": f"{caller}->{callee}",
        "criticality": criticality,
        "trips": trips,
        "instances": instances,
        "longest_open_seconds": round(max(longest, timedelta()).total_seconds()),
        "last_at": timestamp(last_at),
    }
    return ReportRow(cells, f"{telling.BOARD}{caller}/{callee}/")


def _trips_in_words(trips: int, total: int, rows: list[tuple[Any, ...]]) -> str:
    if not trips:
        return "No breaker opened."
    longest = max(rows, key=lambda row: row[5])
    times = "once" if trips == 1 else f"{trips:,} times"
    several = "1 dependency" if total == 1 else f"{total:,} dependencies"
    return (
        f"Breakers of {several} opened {times}; the longest, of {longest[0]}->{longest[1]}, "
        f"for {readable(max(longest[5], timedelta()))}."
    )


def _override_row(one: Override, lasted: timedelta) -> ReportRow:
    reason = one.reason.strip()
    cut = len(reason) > LONGEST_REASON
    cells = {
        "dependency": one.dependency.name,
        "mode": one.mode,
        "set_by": f"{one.set_by_type}:{one.set_by_name}",
        "set_at": timestamp(one.set_at),
        "stood_seconds": round(max(lasted, timedelta()).total_seconds()),
        "ended": one.ended_why or "stands",
        "reason": f"{reason[: LONGEST_REASON - 1].rstrip()}…" if cut else reason,
    }
    return ReportRow(cells, telling.page(one.dependency))


def _overrides_in_words(total: int, live: int, long: int) -> str:
    if not total:
        return "Nothing was forced upon any breaker."
    said = f"{total:,} override{'' if total == 1 else 's'} stood in the week"
    said += f", {live:,} of them still {'stands' if live == 1 else 'stand'}" if live else ""
    return f"{said}; {long:,} for more than a day." if long else f"{said}."
