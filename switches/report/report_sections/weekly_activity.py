"""Report sections about engagements, actors and extensions in the week."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import models
from django.db.models import Aggregate, Count, F, Max, Q, QuerySet, Window
from django.db.models.expressions import ExpressionWrapper

from controlplane.core import durations
from controlplane.core.actors import label_of
from controlplane.core.audit.models import AuditEntry
from controlplane.core.page_registry import REPORT_SECTIONS, Chart, IsOwned, ReportSection
from controlplane.core.sql import fetch_all
from controlplane.core.team_filter import keep_owned
from switches.models import Episode, Switch
from switches.report import weeks
from switches.report.section_rows import (
    MAX_ROWS,
    build_section,
    engaged_by,
    episode_path,
    pluralize,
    switch_path,
)
from switches.scopes import SCOPES

Days = Sequence[tuple[date, datetime, datetime]]
NOTHING = timedelta()
RAMPED = ("ramp.started", "ramp.advanced", "ramp.compensated", "ramp.aborted")
"""Audit actions of ramps that change the published share, except the final release."""

_BY_DAY = """
    SELECT s.scope, day.number - 1,
           count(*) FILTER (WHERE engaged_at >= since),
           count(*) FILTER (WHERE ended_at < until),
           sum(greatest(
               least(coalesce(ended_at, until), until, %(now)s) - greatest(engaged_at, since),
               interval '0'))
    FROM switches_episode
    JOIN switches_switch s ON s.id = switch_id
    JOIN unnest(%(since)s::timestamptz[], %(until)s::timestamptz[])
         WITH ORDINALITY AS day (since, until, number)
         ON engaged_at < until AND (ended_at IS NULL OR ended_at >= since)
    WHERE engaged_at < %(end)s AND (ended_at IS NULL OR ended_at >= %(start)s)
          AND (%(switches)s::text[] IS NULL OR switch_id = ANY(%(switches)s))
    GROUP BY s.scope, day.number
"""


class ScopeDay(NamedTuple):
    """A scope's episodes on a day of the week (from 0): how many began and ended, and their time.

    `stood` is the time for which they were open on the day, in total.
    """

    scope: str
    day: int
    engaged: int
    released: int
    stood: timedelta


class Median(Aggregate):
    function = "PERCENTILE_CONT"
    template = "%(function)s(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = models.DurationField()


@REPORT_SECTIONS.add(110)
def flow_section(
    start: datetime, end: datetime, now: datetime, is_owned: IsOwned = None
) -> ReportSection:
    days = weeks.days_of(start, ZoneInfo(settings.TIME_ZONE))
    by_day = _read_by_day(days, now, is_owned)
    released = sum(day.released for day in by_day)
    lasted = ExpressionWrapper(F("ended_at") - F("engaged_at"), output_field=models.DurationField())
    ended = Episode.objects.filter(ended_at__gte=start, ended_at__lt=end)
    ended = keep_owned(ended, "switch_id", is_owned).annotate(lasted=lasted)
    durations_of = {"median": Median("lasted"), "longest": Max("lasted")}
    section = build_section(
        "flow",
        "Engaged and released",
        ended.order_by("-lasted", "pk")[:MAX_ROWS] if released else (),
        episode_path,
        total=released,
        tone="good",
        summary=_summarize_flow(
            sum(day.engaged for day in by_day),
            released,
            **(ended.aggregate(**durations_of) if released else {}),
        ),
        switch="switch_id",
        stood_seconds=lambda episode: int(episode.lasted.total_seconds()),
        engaged_by=engaged_by,
        ended_by="ended_by",
        how="ended_how",
        ended_at="ended_at",
    )
    return replace(section, charts=_build_charts(days, by_day, now))


@REPORT_SECTIONS.add(120)
def actors_section(
    start: datetime, end: datetime, _now: datetime, is_owned: IsOwned = None
) -> ReportSection:
    changing = Q(action__startswith="switch.") | Q(action__in=RAMPED)
    entries = AuditEntry.objects.filter(changing, at__gte=start, at__lt=end)
    if is_owned is not None:
        entries = entries.filter(target__in=_list_owned(is_owned))
    rows = (
        entries.values("actor_type", "actor_name")
        .annotate(
            engaged=Count("pk", filter=Q(action="switch.engaged")),
            released=Count("pk", filter=Q(action__in=("switch.released", "switch.undone"))),
            ramped=Count("pk", filter=Q(action__in=RAMPED)),
            extended=Count("pk", filter=Q(action="switch.extended")),
            changes=Count("pk"),
        )
        .order_by("-changes", "actor_type", "actor_name")
    )
    found, total = _read_grouped(rows)
    return build_section(
        "who",
        "Who",
        found,
        lambda row: f"/audit/?action={'switch' if row['changes'] > row['ramped'] else 'ramp'}",
        total=total,
        tone="good",
        summary=f"{pluralize(total, 'actor')} changed switches.",
        empty="No changes.",
        actor=lambda row: label_of(row["actor_type"], row["actor_name"]),
        **{name: name for name in ("engaged", "ramped", "released", "extended", "changes")},
    )


@REPORT_SECTIONS.add(100)
def extends_section(
    start: datetime, end: datetime, _now: datetime, is_owned: IsOwned = None
) -> ReportSection:
    entries = AuditEntry.objects.filter(action="switch.extended", at__gte=start, at__lt=end)
    rows = (
        keep_owned(entries, "target", is_owned)
        .values("target")
        .annotate(times=Count("pk"), last_at=Max("at"))
        .order_by("-times", "target")
    )
    found, total = _read_grouped(rows)
    return build_section(
        "extends",
        "Extended",
        found,
        lambda row: switch_path(row["target"]),
        total=total,
        tone="good",
        summary=f"{pluralize(total, 'switch')} extended.",
        empty="No switch was extended.",
        switch="target",
        times="times",
        last_at="last_at",
    )


def _read_grouped(rows: QuerySet[Any, Any]) -> tuple[list[Any], int]:
    """Return the first `MAX_ROWS` rows of a grouped query, and the number of all its rows."""
    found = list(rows.annotate(groups=Window(Count("*")))[:MAX_ROWS])
    return found, found[0]["groups"] if found else 0


def _summarize_flow(
    began: int, ended: int, median: timedelta = NOTHING, longest: timedelta = NOTHING
) -> str:
    if not began and not ended:
        return "No switch was engaged or released."
    text = f"{pluralize(began, 'episode')} began and {ended:,} ended"
    if not ended:
        return f"{text}."
    typical, most = durations.format_readable(median), durations.format_readable(longest)
    return f"{text}; duration: median {typical}, longest {most}."


def _list_owned(is_owned: Callable[[str], bool]) -> list[str]:
    return [pk for pk in Switch.objects.values_list("pk", flat=True) if is_owned(pk)]


def _read_by_day(days: Days, now: datetime, is_owned: IsOwned) -> list[ScopeDay]:
    """Return the figures of scopes and days with episodes that were open on the day or ended."""
    switches = None
    if is_owned is not None:
        switches = _list_owned(is_owned)
    values = {
        "since": [since for _, since, _ in days],
        "until": [until for *_, until in days],
        "start": days[0][1],
        "end": days[-1][2],
        "now": now,
        "switches": switches,
    }
    return [ScopeDay(*row) for row in fetch_all(_BY_DAY, values)]


def _build_charts(days: Days, by_day: Sequence[ScopeDay], now: datetime) -> tuple[Chart, ...]:
    """Return the week's charts, without those that have only zeros."""
    engaged, released = [0] * len(days), [0] * len(days)
    hours: dict[str, list[float]] = defaultdict(lambda: [0.0] * len(days))
    for one in by_day:
        engaged[one.day] += one.engaged
        released[one.day] += one.released
        hours[one.scope][one.day] = one.stood.total_seconds() / 3600
    charts: list[tuple[str, str, str, Sequence[float]]] = [
        ("Engaged per day", "episodes", "engaged", engaged),
        ("Released per day", "episodes", "released", released),
        *(
            (f"Engaged hours per day: {scope}", "hours", f"{scope} switches engaged", hours[scope])
            for scope in SCOPES.names
        ),
    ]
    return tuple(_build_chart(*chart, days, now) for chart in charts if any(chart[-1]))


def _build_chart(
    title: str, unit: str, verb: str, values: Sequence[float], days: Days, now: datetime
) -> Chart:
    """Return a chart of the week's days; those that have not begun have no value."""
    peak, day = max((value, -number) for number, value in enumerate(values))
    alt = f"{_format_number(sum(values))} {unit} {verb} in the week, most on {days[-day][0]:%A}: "
    return Chart(
        title=title,
        unit=unit,
        alt=f"{alt}{_format_number(peak)}.",
        bars=tuple(
            (f"{date_:%a} {date_.day}", round(float(value), 2) if since <= now else None)
            for (date_, since, _), value in zip(days, values, strict=True)
        ),
    )


def _format_number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or value >= 100 else f"{value:.1f}"
