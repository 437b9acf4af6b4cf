"""Reading reports: the one that is kept, or the running week as it stands."""

from datetime import datetime

from controlplane.core.errors import NotFound
from switches.models import WeeklyReport
from switches.report import weeks
from switches.report.compose import compose, zone
from switches.report.resources import unkept
from switches.report.weeks import Week


def named(text: str) -> Week:
    """The week of a path; raises :class:`NotFound` if it is none."""
    try:
        return weeks.parse(text)
    except ValueError as error:
        raise NotFound(f"{text!r} is no week. {error}") from error


def find(text: str, now: datetime) -> WeeklyReport:
    """The report of a week as it is kept; the running week's is composed now if none is kept yet.

    Raises :class:`NotFound` for a week to come and for one that no report was made of.
    """
    week = named(text)
    kept = WeeklyReport.objects.filter(week=str(week)).first()
    if kept is not None:
        return kept
    if weeks.week_of(now, zone()) == week:
        return composed(week, now)
    if week.starts_at(zone()) > now:
        raise NotFound(f"The week {week} has not begun.")
    raise NotFound(
        f"No report was made of {week}. `manage.py report weekly --week {week}` makes it."
    )


def composed(week: Week, now: datetime) -> WeeklyReport:
    """The report as it would be now, not kept."""
    return unkept(compose(week, now), week.starts_at(zone()), week.ends_at(zone()))
