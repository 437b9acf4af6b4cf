"""Lookup of saved reports and composition of unsaved ones."""

from datetime import datetime

from controlplane.core.errors import NotFound
from switches.models import WeeklyReport
from switches.report import weeks
from switches.report.compose import compose, zone
from switches.report.resources import unsaved_report
from switches.report.weeks import Week


def parse_week(text: str) -> Week:
    """Return the week named in a URL. Raise :class:`NotFound` for an invalid name."""
    try:
        return weeks.parse(text)
    except ValueError as error:
        raise NotFound(f"{text!r} is no week. {error}") from error


def find(text: str, now: datetime) -> WeeklyReport:
    """Return the saved report of a week, or a composed one for the running week.

    Raise :class:`NotFound` for a future week or a past week without a report.
    """
    week = parse_week(text)
    kept = WeeklyReport.objects.filter(week=str(week)).first()
    if kept is not None:
        return kept
    if weeks.week_of(now, zone()) == week:
        return compose_unsaved(week, now)
    if week.starts_at(zone()) > now:
        raise NotFound(f"The week {week} has not begun.")
    raise NotFound(
        f"No report was made of {week}. `manage.py report weekly --week {week}` makes it."
    )


def compose_unsaved(week: Week, now: datetime) -> WeeklyReport:
    """Return the report of a week as of now, unsaved."""
    return unsaved_report(compose(week, now), week.starts_at(zone()), week.ends_at(zone()))
