"""ISO weeks in a time zone: `2026-W47` lasts from Monday 00:00 to the next Monday.

Results are in UTC. Weeks with a daylight saving change have 167 or 169 hours.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

DUE_AT = time(9)
DAYS = 7
FIRST_YEAR, LAST_YEAR = 1970, 9000
ADVICE = "Use an ISO week, such as 2026-W47"

_WRITTEN = re.compile(r"([0-9]{4})-W([0-9]{2})")


@dataclass(frozen=True, order=True)
class Week:
    """An ISO week; `year` is the year of its Thursday, `number` is 1 to 53."""

    year: int
    number: int

    def __str__(self) -> str:
        return f"{self.year:04}-W{self.number:02}"

    @property
    def monday(self) -> date:
        return date.fromisocalendar(self.year, self.number, 1)

    @property
    def sunday(self) -> date:
        return self.monday + timedelta(days=DAYS - 1)

    def later(self, weeks: int) -> "Week":
        return _week_of_date(self.monday + timedelta(weeks=weeks))

    def starts_at(self, zone: tzinfo) -> datetime:
        return _to_utc(self.monday, time(0), zone)

    def ends_at(self, zone: tzinfo) -> datetime:
        return self.later(1).starts_at(zone)

    def due_at(self, zone: tzinfo) -> datetime:
        """Return the due time of the week's report: the next Monday at nine."""
        return _to_utc(self.later(1).monday, DUE_AT, zone)


def parse(text: str) -> Week:
    """Return the ISO week in a text. Raise ValueError with a message for the user."""
    written = _WRITTEN.fullmatch(text.strip())
    if written is None:
        raise ValueError(f"{ADVICE}.")
    year, number = int(written[1]), int(written[2])
    if not FIRST_YEAR <= year <= LAST_YEAR:
        raise ValueError(f"{ADVICE}, from {FIRST_YEAR} to {LAST_YEAR}.")
    try:
        date.fromisocalendar(year, number, 1)
    except ValueError:
        raise ValueError(f"{year} has no week {number}. {ADVICE}.") from None
    return Week(year, number)


def week_of(moment: datetime, zone: tzinfo) -> Week:
    """Return the week of a time.

    Weeks are compared by start time, not by local date: if a clock is set back across midnight,
    Sunday's date recurs on Monday.
    """
    week = _week_of_date(moment.astimezone(zone).date())
    if moment < week.starts_at(zone):
        return week.later(-1)
    return week if moment < week.ends_at(zone) else week.later(1)


def last_due(moment: datetime, zone: tzinfo) -> Week:
    complete = week_of(moment, zone).later(-1)
    return complete if complete.due_at(zone) <= moment else complete.later(-1)


def days_of(starts_at: datetime, zone: tzinfo) -> list[tuple[date, datetime, datetime]]:
    """Return the seven days of the week from `starts_at`: date, start and end of each."""
    first = week_of(starts_at, zone).monday
    dates = [first + timedelta(days=number) for number in range(DAYS + 1)]
    begins = [_to_utc(day, time(0), zone) for day in dates]
    return [(dates[n], begins[n], begins[n + 1]) for n in range(DAYS)]


def _week_of_date(day: date) -> Week:
    year, number, _ = day.isocalendar()
    return Week(year, number)


def _to_utc(day: date, hour: time, zone: tzinfo) -> datetime:
    return datetime.combine(day, hour, zone).astimezone(UTC)
