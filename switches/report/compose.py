"""Composition of weekly reports from the registered sections, and their lookup."""

from contextlib import nullcontext
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction

from controlplane.core import canonical
from controlplane.core.errors import NotFound
from controlplane.core.page_registry import REPORT_SECTIONS, ReportBuilder, ReportSection
from controlplane.core.registry import RegisteredFunction
from switches.models import WeeklyReport
from switches.report import weeks
from switches.report.weeks import Week

log = structlog.get_logger(__name__)

SCHEMA = 1
WORST_FIRST = ("bad", "warn", "unknown", "good")


def get_zone() -> ZoneInfo:
    return ZoneInfo(settings.TIME_ZONE)


def compose(week: Week, now: datetime) -> dict[str, Any]:
    """Return the report's content as of `now`, without saving it.

    A failing section is logged and replaced by a note; an unreachable database raises.
    """
    starts_at, ends_at = week.starts_at(get_zone()), week.ends_at(get_zone())
    return {
        "schema": SCHEMA,
        "week": str(week),
        "starts_at": canonical.timestamp(starts_at),
        "ends_at": canonical.timestamp(ends_at),
        "generated_at": canonical.timestamp(now),
        "final": now >= ends_at,
        "time_zone": settings.TIME_ZONE,
        "environment": settings.ENVIRONMENT_NAME,
        "sections": [
            _read_section(section, starts_at, ends_at, now) for section in REPORT_SECTIONS.values()
        ],
    }


def parse_week(text: str) -> Week:
    """Return the week named in a URL. Raise :class:`NotFound` for an invalid name."""
    try:
        return weeks.parse(text)
    except ValueError as error:
        raise NotFound(f"{text!r} is not a week. {error}") from error


def find_report(text: str, now: datetime) -> WeeklyReport:
    """Return the saved report of a week, or a composed one for the running week.

    Raise :class:`NotFound` for a future week or a past week without a report.
    """
    week = parse_week(text)
    saved = WeeklyReport.objects.filter(week=str(week)).first()
    if saved is not None:
        return saved
    if weeks.week_of(now, get_zone()) == week:
        content = compose(week, now)
        return build_report(week, datetime.fromisoformat(content["generated_at"]), content)
    if week.starts_at(get_zone()) > now:
        raise NotFound(f"The week {week} has not begun.")
    raise NotFound(
        f"There is no report for {week}. To generate it: `manage.py report weekly --week {week}`."
    )


def build_report(week: Week, now: datetime, content: dict[str, Any]) -> WeeklyReport:
    """Return an unsaved report of the week, not final, with this content."""
    starts_at, ends_at = week.starts_at(get_zone()), week.ends_at(get_zone())
    dates = {"starts_at": starts_at, "ends_at": ends_at, "generated_at": now}
    return WeeklyReport(week=str(week), **dates, content=content)


def list_unread_sections(content: dict[str, Any]) -> list[str]:
    return [section["title"] for section in content.get("sections", ()) if section["unread"]]


def worst_first(content: dict[str, Any]) -> list[dict[str, Any]]:
    return sorted(content["sections"], key=lambda section: WORST_FIRST.index(section["tone"]))


def _read_section(
    section: RegisteredFunction[ReportBuilder], start: datetime, end: datetime, now: datetime
) -> dict[str, Any]:
    slug = section.label.replace(" ", "_")
    try:
        # A savepoint, so that a failing statement does not abort the other sections.
        with transaction.atomic() if connection.in_atomic_block else nullcontext():
            return _to_json(section.function(start, end, now))
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
