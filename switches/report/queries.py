"""Lookup of saved reports and composition of unsaved ones."""

from datetime import datetime

from controlplane.core.errors import NotFound
from switches.models import WeeklyReport
from switches.report import weeks
from switches.report.compose import compose, get_zone
from switches.report.weeks import Week


def parse_week(text: str) -> Week:
    """Return the week named in a URL. Raise :class:`NotFound` for an invalid name."""
    try:
        return weeks.parse(text)
    except ValueError as error:
        raise NotFound(f"{text!r} is no week. {error}") from error


def find_report(text: str, now: datetime) -> WeeklyReport:
    """Return the saved report of a week, or a composed one for the running week.

    Raise :class:`NotFound` for a future week or a past week without a report.
    """
    week = parse_week(text)
    saved = WeeklyReport.objects.filter(week=str(week)).first()
    if saved is not None:
        return saved
    if weeks.week_of(now, get_zone()) == week:
        return compose_unsaved(week, now)
    if week.starts_at(get_zone()) > now:
        raise NotFound(f"The week {week} has not begun.")
    raise NotFound(
        f"No report was made of {week}. `manage.py report weekly --week {week}` makes it."
    )


def compose_unsaved(week: Week, now: datetime) -> WeeklyReport:
    content = compose(week, now)
    return WeeklyReport(
        week=content["week"],
        starts_at=week.starts_at(get_zone()),
        ends_at=week.ends_at(get_zone()),
        generated_at=datetime.fromisoformat(content["generated_at"]),
        final=False,
        content=content,
    )
