"""Composition of a weekly report from the registered sections, as JSON values."""

from contextlib import nullcontext
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction

from controlplane.core import canonical
from controlplane.core.page_registry import REPORT_SECTIONS, ReportBuilder, ReportSection
from controlplane.core.registry import RegisteredFunction
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
    return _build_section(slug, title, "This part could not be read.", "warn", unread=True)


def _to_json(section: ReportSection) -> dict[str, Any]:
    """Return a section as JSON values. Raise if a value can't be serialized."""
    content = _build_section(
        section.slug,
        section.title,
        section.summary,
        section.tone if section.tone in WORST_FIRST else "warn",
        columns=list(section.columns),
        rows=[
            {"cells": {name: row.cells.get(name) for name in section.columns}, "path": row.path}
            for row in section.rows
        ],
        total=section.total,
        charts=[
            {
                "title": chart.title,
                "unit": chart.unit,
                "alt": chart.alt,
                "bars": [[label, value] for label, value in chart.bars],
            }
            for chart in section.charts
        ],
    )
    canonical.dumps(content)
    return content


def _build_section(slug: str, title: str, summary: str, tone: str, **more: Any) -> dict[str, Any]:
    nothing = {"columns": [], "rows": [], "total": 0, "charts": [], "unread": False}
    return {"slug": slug, "title": title, "summary": summary, "tone": tone, **nothing, **more}
