"""Composition of weekly reports from the registered sections, and their lookup."""

from contextlib import nullcontext
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import QuerySet

from controlplane.core import canonical
from controlplane.core.authority import TeamName, read_teams
from controlplane.core.errors import NotFound
from controlplane.core.page_registry import REPORT_SECTIONS, IsOwned, ReportBuilder, ReportSection
from controlplane.core.registry import RegisteredFunction
from switches.models import TeamReport, WeeklyReport, WeekReport
from switches.report import weeks
from switches.report.weeks import Week

log = structlog.get_logger(__name__)

SCHEMA = 1
WORST_FIRST = ("bad", "warn", "unknown", "good")


def get_zone() -> ZoneInfo:
    return ZoneInfo(settings.TIME_ZONE)


def compose(week: Week, now: datetime, team: TeamName | None = None) -> dict[str, Any]:
    """Return the report's content as of `now`, without saving it.

    A team's report has only what the team, and the teams below it, own. A failing section is logged
    and replaced by a note; an unreachable database raises.
    """
    starts_at, ends_at = week.starts_at(get_zone()), week.ends_at(get_zone())
    is_owned = read_teams().filter_for(None, team.slug).includes if team else None
    sections = [
        _read_section(section, starts_at, ends_at, now, is_owned)
        for section in REPORT_SECTIONS.values()
    ]
    return {
        "schema": SCHEMA,
        "week": str(week),
        "starts_at": canonical.timestamp(starts_at),
        "ends_at": canonical.timestamp(ends_at),
        "generated_at": canonical.timestamp(now),
        "final": now >= ends_at,
        "time_zone": settings.TIME_ZONE,
        "environment": settings.ENVIRONMENT_NAME,
        **({"team": {"slug": team.slug, "name": team.name}} if team else {}),
        "sections": [section for section in sections if section is not None],
    }


def parse_week(text: str) -> Week:
    """Return the week named in a URL. Raise :class:`NotFound` for an invalid name."""
    try:
        return weeks.parse(text)
    except ValueError as error:
        raise NotFound(f"{text!r} is not a week. {error}") from error


def find_report(text: str, now: datetime, team: str = "") -> WeekReport:
    """Return the saved report of a week, or a composed one for the running week.

    Raise :class:`NotFound` for a future week, a past week without a report, or an unknown team.
    """
    week = parse_week(text)
    saved: WeekReport | None = select_reports(team).filter(week=str(week)).first()
    if saved is not None:
        return saved
    name = read_teams().owner_of(f"team:{team}") if team else None
    if team and name is None:
        raise NotFound(f"There is no team {team!r}, and no report of it for {week}.")
    if weeks.week_of(now, get_zone()) == week:
        content = compose(week, now, name)
        return build_report(week, datetime.fromisoformat(content["generated_at"]), content, team)
    if week.starts_at(get_zone()) > now:
        raise NotFound(f"The week {week} has not begun.")
    command = f"manage.py report weekly --week {week}" + (f" --team {team}" if team else "")
    whose = f" of {team}" if team else ""
    raise NotFound(f"There is no report{whose} for {week}. To generate it: `{command}`.")


def select_reports(team: str = "") -> QuerySet[Any]:
    """Return the saved reports of a team, or those about everything."""
    return TeamReport.objects.filter(team=team) if team else WeeklyReport.objects.all()


def build_report(week: Week, now: datetime, content: dict[str, Any], team: str = "") -> WeekReport:
    """Return an unsaved report of the week, not final, with this content."""
    starts_at, ends_at = week.starts_at(get_zone()), week.ends_at(get_zone())
    dates = {"starts_at": starts_at, "ends_at": ends_at, "generated_at": now}
    if team:
        return TeamReport(week=str(week), team=team, **dates, content=content)
    return WeeklyReport(week=str(week), **dates, content=content)


def list_unread_sections(content: dict[str, Any]) -> list[str]:
    return [section["title"] for section in content.get("sections", ()) if section["unread"]]


def worst_first(content: dict[str, Any]) -> list[dict[str, Any]]:
    return sorted(content["sections"], key=lambda section: WORST_FIRST.index(section["tone"]))


def _read_section(
    section: RegisteredFunction[ReportBuilder],
    start: datetime,
    end: datetime,
    now: datetime,
    is_owned: IsOwned,
) -> dict[str, Any] | None:
    slug = section.label.replace(" ", "_")
    try:
        # A savepoint, so that a failing statement does not abort the other sections.
        with transaction.atomic() if connection.in_atomic_block else nullcontext():
            found = section.function(start, end, now, is_owned)
            return None if found is None else _to_json(found)
    except InterfaceError:
        raise
    except OperationalError as error:
        if not isinstance(error.__cause__, psycopg.errors.QueryCanceled):
            raise
        log.warning("report.section_too_slow", section=slug)
    except Exception:
        log.exception("report.section_failed", section=slug)
    title = section.label.capitalize()
    return _to_json(ReportSection(slug, title, "This part could not be read.", "warn"), unread=True)


def _to_json(section: ReportSection, *, unread: bool = False) -> dict[str, Any]:
    """Return a section as JSON values. Raise if a value can't be serialized."""
    content = {
        **vars(section),
        "tone": section.tone if section.tone in WORST_FIRST else "warn",
        "columns": list(section.columns),
        "rows": [
            {
                "cells": {name: _to_cell(row.cells.get(name)) for name in section.columns},
                "path": row.path,
            }
            for row in section.rows
        ],
        "charts": [
            {**vars(chart), "bars": list(map(list, chart.bars))} for chart in section.charts
        ],
        "unread": unread,
    }
    canonical.dumps(content)
    return content


def _to_cell(value: Any) -> Any:
    return canonical.timestamp(value) if isinstance(value, datetime) else value
