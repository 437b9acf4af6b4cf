"""Sections of the weekly report about breakers and overrides."""

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from controlplane.core.canonical import timestamp
from controlplane.core.durations import format_readable
from controlplane.core.instances.exports import INSTANCES, TRIPPED
from controlplane.core.page_registry import REPORT_SECTIONS, IsOwned, ReportRow, ReportSection
from controlplane.core.sql import fetch_all

from . import message_facts
from .models import Dependency, Override
from .names import dependency_name, format_name
from .states.reporting_counts import ReportingCounts, load_reporting_counts
from .templatetags.breakers import MODES

MAX_ROWS = 50
CLOCKS_DIFFER = timedelta(hours=1)
LONG = timedelta(hours=24)
MAX_REASON_LENGTH = 300
NOT_COUNTED = ReportingCounts(0, 0, 0, 0)

# Every opening is a trip, also one from half-open. A breaker was open until its next transition to
# closed or, if that is missing, until its instance's last report. Totals include dependencies that
# are beyond the limit.
_TRIPS = f"""
    WITH transitions AS (
        SELECT dependency_id, instance, boot, from_state, to_state, cause, at,
               min(at) FILTER (WHERE to_state = 'closed') OVER later AS closed_at,
               max(at) OVER later AS last_at
        FROM breakers_transition
        WHERE received_at >= %(received)s AND at >= %(start)s AND at < %(end)s
              AND (%(dependencies)s::bigint[] IS NULL OR dependency_id = ANY(%(dependencies)s))
        WINDOW later AS (PARTITION BY dependency_id, boot ORDER BY n DESC)
    ), trips AS (
        SELECT t.dependency_id, t.instance, t.at,
               coalesce(t.closed_at, greatest(t.last_at, CASE
                   WHEN i.reported_at < %(end)s THEN i.reported_at
                   WHEN i.reported_at >= %(end)s THEN %(end)s
               END)) - t.at AS lasted
        FROM transitions t LEFT JOIN {INSTANCES} ON i.id = t.instance AND i.boot = t.boot
        WHERE {TRIPPED}
    ), counted AS (
        SELECT d.caller, d.callee, d.criticality, count(*) AS trips,
               count(DISTINCT trips.instance) AS instances, max(trips.lasted) AS longest,
               max(trips.at) AS last_at
        FROM trips JOIN breakers_dependency d ON d.id = trips.dependency_id
        GROUP BY d.id
    )
    SELECT counted.*, sum(trips) OVER (), count(*) OVER (),
           first_value(caller || '->' || callee) OVER by_length,
           first_value(longest) OVER by_length,
           bool_or(criticality IN ('critical', 'high')) OVER ()
    FROM counted
    WINDOW by_length AS (ORDER BY longest DESC, caller, callee)
    ORDER BY trips DESC, caller, callee LIMIT %(most)s
"""  # noqa: S608


@REPORT_SECTIONS.add(66)
def breakers_section(
    start: datetime, end: datetime, now: datetime, is_owned: IsOwned = None
) -> ReportSection:
    """Return the breakers that opened in the week, how often, and the longest time open.

    A team's report says nothing about dependencies that are not reporting.
    """
    values: dict[str, Any] = {
        "start": start,
        "end": min(end, now),
        "received": start - CLOCKS_DIFFER,
        "most": MAX_ROWS,
        "dependencies": None,
    }
    if is_owned is not None:
        owned = [one.pk for one in Dependency.objects.all() if is_owned(one.resource)]
        values["dependencies"] = owned
    rows = fetch_all(_TRIPS, values)
    trips, total, *longest, is_grave = rows[0][7:] if rows else (0, 0, False)
    counts = load_reporting_counts(now) if is_owned is None else NOT_COUNTED
    unsure = counts.in_the_dark or (not counts.reported and counts.known)
    return ReportSection(
        slug="breakers",
        title="Breakers",
        summary=f"{_trips_in_words(int(trips), total, *longest)}{_silent_in_words(counts)}",
        tone="warn" if is_grave else "unknown" if unsure else "good",
        headline=_choose_headline(int(trips), is_grave, counts),
        columns=(
            "dependency",
            "criticality",
            "trips",
            "instances",
            "longest_open_seconds",
            "last_at",
        ),
        rows=tuple(_trip_row(row[:7]) for row in rows),
        total=total,
    )


@REPORT_SECTIONS.add(67)
def overrides_section(
    start: datetime, end: datetime, now: datetime, is_owned: IsOwned = None
) -> ReportSection:
    """Return the overrides that were live in the week, the longest first."""
    until = min(end, now)
    stood = Q(set_at__lt=end) & (Q(ended_at__isnull=True) | Q(ended_at__gte=start))
    found = Override.objects.filter(stood).select_related("dependency").order_by("set_at")
    rows = [one for one in found if is_owned is None or is_owned(one.dependency.resource)]
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
        rows=tuple(_override_row(one, lasted[one.pk]) for one in rows[:MAX_ROWS]),
        total=len(rows),
        headline=f"{len(long):,} override{'' if len(long) == 1 else 's'} for more than a day",
    )


def _trip_row(row: tuple[Any, ...]) -> ReportRow:
    caller, callee, criticality, trips, instances, longest, last_at = row
    cells = {
        "dependency": format_name(dependency_name(caller, callee)),
        "criticality": criticality,
        "trips": trips,
        "instances": instances,
        "longest_open_seconds": round(max(longest, timedelta()).total_seconds()),
        "last_at": timestamp(last_at),
    }
    return ReportRow(cells, message_facts.dependency_path(caller, callee))


def _choose_headline(trips: int, is_grave: bool, counts: ReportingCounts) -> str:
    if is_grave:
        return f"{trips:,} breaker trip{'' if trips == 1 else 's'}"
    if counts.in_the_dark:
        return f"{counts.in_the_dark:,} critical dependencies without reports"
    return "No breakers reporting"


def _trips_in_words(
    trips: int, total: int, longest_of: str = "", longest: timedelta = timedelta()
) -> str:
    if not trips:
        return "No breaker opened."
    times = "once" if trips == 1 else f"{trips:,} times"
    several = "1 dependency" if total == 1 else f"{total:,} dependencies"
    return (
        f"Breakers of {several} opened {times}; the longest, of {format_name(longest_of)}, stayed"
        f" open for {format_readable(max(longest, timedelta()))}."
    )


def _silent_in_words(counts: ReportingCounts) -> str:
    if not counts.silent:
        return ""
    were = "was" if counts.silent == 1 else "were"
    grave = f", {counts.in_the_dark:,} of them critical" if counts.in_the_dark else ""
    return f" {counts.silent:,} of {counts.known:,} {were} not reporting{grave}."


def _override_row(one: Override, lasted: timedelta) -> ReportRow:
    reason = one.reason.strip()
    cut = len(reason) > MAX_REASON_LENGTH
    cells = {
        "dependency": one.dependency.label,
        "mode": MODES[one.mode][0],
        "set_by": one.set_by,
        "set_at": timestamp(one.set_at),
        "stood_seconds": round(max(lasted, timedelta()).total_seconds()),
        "ended": one.ended_why or "in force",
        "reason": f"{reason[: MAX_REASON_LENGTH - 1].rstrip()}…" if cut else reason,
    }
    return ReportRow(cells, message_facts.page_path(one.dependency))


def _overrides_in_words(total: int, live: int, long: int) -> str:
    if not total:
        return "No overrides."
    summary = f"{total:,} override{'' if total == 1 else 's'} in force this week"
    summary += f", {live:,} still in force" if live else ""
    return f"{summary}; {long:,} for more than a day." if long else f"{summary}."
