"""Report sections about engagements, actors and extensions in the week."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import models
from django.db.models import Aggregate, Count, F, Max, Q, QuerySet, Sum, Value, Window
from django.db.models.expressions import Combinable, ExpressionWrapper
from django.db.models.functions import Coalesce, Greatest, Least

from controlplane.core import durations
from controlplane.core.actors import label_of
from controlplane.core.audit.models import AuditEntry
from controlplane.core.page_registry import REPORT_SECTIONS, Chart, ReportSection
from switches.models import Episode
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


class Median(Aggregate):
    function = "PERCENTILE_CONT"
    template = "%(function)s(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = models.DurationField()


@REPORT_SECTIONS.add(110)
def flow_section(start: datetime, end: datetime, now: datetime) -> ReportSection:
    lasted = ExpressionWrapper(F("ended_at") - F("engaged_at"), output_field=models.DurationField())
    days = weeks.days_of(start, ZoneInfo(settings.TIME_ZONE))
    began, ended = _falls_within("engaged_at", start, end), _falls_within("ended_at", start, end)
    counts = Episode.objects.filter(began | ended).aggregate(
        began=Count("pk", filter=began),
        count=Count("pk", filter=ended),
        median=Median(lasted, filter=ended),
        longest=Max(lasted, filter=ended),
        **_count_by_day(days),
    )
    some = Episode.objects.filter(ended) if counts["count"] else Episode.objects.none()
    longest = some.annotate(lasted=lasted).order_by("-lasted", "pk")[:MAX_ROWS]
    section = build_section(
        "flow",
        "Engaged and released",
        longest,
        episode_path,
        total=counts["count"],
        tone="good",
        summary=_summarize_flow(counts),
        switch="switch_id",
        stood_seconds=lambda episode: int(episode.lasted.total_seconds()),
        engaged_by=engaged_by,
        ended_by="ended_by",
        how="ended_how",
        ended_at="ended_at",
    )
    return replace(section, charts=_build_charts(days, counts, now))


@REPORT_SECTIONS.add(120)
def actors_section(start: datetime, end: datetime, _now: datetime) -> ReportSection:
    changing = Q(action__startswith="switch.") | Q(action__in=RAMPED)
    rows = (
        AuditEntry.objects.filter(changing, at__gte=start, at__lt=end)
        .values("actor_type", "actor_name")
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
def extends_section(start: datetime, end: datetime, _now: datetime) -> ReportSection:
    rows = (
        AuditEntry.objects.filter(action="switch.extended", at__gte=start, at__lt=end)
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


def _summarize_flow(counts: dict[str, Any]) -> str:
    began = counts["began"]
    if not began and not counts["count"]:
        return "No switch was engaged or released."
    text = f"{pluralize(began, 'episode')} began and {counts['count']:,} ended"
    if not counts["count"]:
        return f"{text}."
    median, longest = (durations.format_readable(counts[name]) for name in ("median", "longest"))
    return f"{text}; duration: median {median}, longest {longest}."


def _count_by_day(days: Days) -> dict[str, Count]:
    return {
        f"{field}_{number}": Count("pk", filter=_falls_within(field, since, until))
        for field in ("engaged_at", "ended_at")
        for number, (_, since, until) in enumerate(days)
    }


def _build_charts(days: Days, counts: dict[str, Any], now: datetime) -> tuple[Chart, ...]:
    """Return the week's charts, without those that have only zeros."""
    by_day = {
        field: [counts[f"{field}_{number}"] for number in range(len(days))]
        for field in ("engaged_at", "ended_at")
    }
    charts = [
        ("Engaged per day", "episodes", "engaged", by_day["engaged_at"]),
        ("Released per day", "episodes", "released", by_day["ended_at"]),
        *(
            (f"Engaged hours per day: {scope}", "hours", f"{scope} switches engaged", hours)
            for scope, hours in _read_engaged_hours(days, now)
        ),
    ]
    return tuple(_build_chart(*chart, days, now) for chart in charts if any(chart[-1]))


def _read_engaged_hours(days: Days, now: datetime) -> list[tuple[str, list[float]]]:
    """Return the hours in which switches were engaged, by scope and day."""
    so_far = [(since, max(since, min(until, now))) for _, since, until in days]
    stood = {
        f"day_{number}": Coalesce(
            Sum(_overlap_duration(since, until), filter=_open_within(since, until)),
            Value(NOTHING),
        )
        for number, (since, until) in enumerate(so_far)
    }
    some = _open_within(days[0][1], days[-1][2])
    rows = Episode.objects.filter(some).values_list("switch__scope").annotate(**stood).order_by()
    found = {scope: [day.total_seconds() / 3600 for day in each] for scope, *each in rows}
    return [(scope, found[scope]) for scope in SCOPES.names if scope in found]


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


def _falls_within(field: str, since: datetime, until: datetime) -> Q:
    return Q(**{f"{field}__gte": since, f"{field}__lt": until})


def _open_within(since: datetime, until: datetime) -> Q:
    return Q(engaged_at__lt=until) & (Q(ended_at__isnull=True) | Q(ended_at__gt=since))


def _overlap_duration(since: datetime, until: datetime) -> Combinable:
    last = Least(Coalesce("ended_at", Value(until)), Value(until))
    return last - Greatest("engaged_at", Value(since))
