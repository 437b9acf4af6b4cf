"""Formatting of texts, times and numbers for people. Pure."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

_DURATION = re.compile(r"[1-9][0-9]{0,8}[smhdw]", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_FIRST, _LAST = datetime(2, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)
_DIRECTION_MARKS = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
"""Characters that reverse the text direction and so disguise a line."""


@dataclass(frozen=True)
class StyledText:
    """A text in one of the styles of `screen.STYLES`."""

    text: str
    style: str = ""


@dataclass(frozen=True)
class Cell:
    """A sequence of styled texts, which may contain line breaks."""

    parts: tuple[StyledText, ...] = ()

    def __str__(self) -> str:
        return "".join(part.text for part in self.parts)


def cell(*pieces: object) -> Cell:
    """Return a cell of the non-empty pieces: texts (cleaned), styled texts and cells."""
    parts: list[StyledText] = []
    for piece in pieces:
        if isinstance(piece, Cell):
            parts += piece.parts
        elif isinstance(piece, StyledText):
            if piece.text:
                parts.append(StyledText(clean(piece.text), piece.style))
        elif piece is not None and piece != "":
            parts.append(StyledText(clean(str(piece))))
    return Cell(tuple(parts))


def stack(*cells: object) -> Cell:
    """Return a cell with each non-empty piece on a line of its own."""
    return join(cells, "\n")


def single_line(one: Cell) -> Cell:
    """Return a copy of the cell on one line, with spaces in place of line breaks."""
    return Cell(tuple(StyledText(part.text.replace("\n", " "), part.style) for part in one.parts))


def join(pieces: Iterable[object], between: str = ", ") -> Cell:
    parts: list[StyledText] = []
    for piece in pieces:
        found = cell(piece).parts
        if found:
            parts += [StyledText(between), *found] if parts else found
    return Cell(tuple(parts))


def clean(text: str) -> str:
    """Return `text` without characters that could control a terminal or disguise the line."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_replace_unsafe(letter) for letter in text)


def _replace_unsafe(letter: str) -> str:
    if letter in "\n\r\t\v\f\u0085\u2028\u2029":
        return " "
    wrong = letter in _DIRECTION_MARKS or unicodedata.category(letter) in ("Cc", "Cs", "Cn", "Co")
    return "\ufffd" if wrong else letter


def format_duration(seconds: float) -> str:
    """Return a rounded duration, such as `3 h 4 min`, `40 min` or `2 min 5 s`."""
    left = round(seconds)
    if left < 60:
        return f"{left} s"
    if left >= 2 * 86_400:
        left = round(left / 3_600)
        large, small, count = "d", "h", 24
    elif left >= 600:
        left = round(left / 60)
        large, small, count = "h", "min", 60
        if left < 60:
            return f"{left} min"
    else:
        large, small, count = "min", "s", 60
    whole, rest = divmod(left, count)
    return f"{whole} {large} {rest} {small}" if rest else f"{whole} {large}"


def parse_time(at: object) -> datetime | None:
    """Return a time of the API, None if it is missing or can't be displayed."""
    if not isinstance(at, str):
        return None
    try:
        moment = datetime.fromisoformat(at)
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        # A time that can't be converted to every time zone can't be displayed.
        return moment if _FIRST < moment < _LAST else None
    except ValueError:
        return None


@dataclass(frozen=True)
class Clock:
    """A formatter of the API's times, relative to the console's current time `now`.

    `zone` is the time zone for display; None is this machine's zone.
    """

    now: datetime
    zone: tzinfo | None = None

    def short_time(self, moment: object) -> str:
        """Return a time such as `14:02`, with the day unless it is today; `-` for None."""
        found = parse_time(moment)
        if found is None:
            return "-"
        local, today = found.astimezone(self.zone), self.now.astimezone(self.zone)
        if local.date() == today.date():
            return f"{local:%H:%M}"
        if abs(local.date() - today.date()) < timedelta(days=6):
            return f"{local:%a %H:%M}"
        return f"{local:%d %b %H:%M}" if local.year == today.year else f"{local:%d %b %Y}"

    def exact_time(self, moment: object) -> str:
        """Return a time such as `2026-11-22 14:02:07 +0100`; `-` for None."""
        found = parse_time(moment)
        return "-" if found is None else f"{found.astimezone(self.zone):%Y-%m-%d %H:%M:%S %z}"

    def time_of_day(self, moment: object) -> str:
        """Return the time of day, such as `14:02:07`; for None that of the current time."""
        found = parse_time(moment) or self.now
        return f"{found.astimezone(self.zone):%H:%M:%S}"

    def ago(self, moment: object) -> str:
        """Return the time since `moment`, such as `1 h 2 min ago`; `-` for None."""
        found = parse_time(moment)
        if found is None:
            return "-"
        return f"{format_duration(max(0.0, self._seconds_since(found)))} ago"

    def duration(self, first: object, last: object) -> str:
        """Return the time between two times, as `1 h 2 min`; `-` if `first` is None.

        If `last` is None, the duration ends now.
        """
        began, ended = parse_time(first), parse_time(last) or self.now
        return "-" if began is None else format_duration(max(0.0, (ended - began).total_seconds()))

    def time_left(self, moment: object) -> str:
        """Return the time to or since `moment`: `in 3 h 4 min` or `4 min ago`; `-` for None."""
        found = parse_time(moment)
        if found is None:
            return "-"
        since = self._seconds_since(found)
        return f"in {format_duration(-since)}" if since < 0 else f"{format_duration(since)} ago"

    def is_over(self, moment: object) -> bool:
        found = parse_time(moment)
        return found is not None and self._seconds_since(found) >= 0

    def _seconds_since(self, moment: datetime) -> float:
        return (self.now - moment).total_seconds()


def format_percent(value: object) -> str:
    """Return `12.5 %` for 12.5."""
    return f"{value:g} %" if isinstance(value, int | float) else "-"


def format_ratio(value: object, digits: int = 1) -> str:
    """Return `84.2 %` for 0.842."""
    return f"{value * 100:.{digits}f} %" if isinstance(value, int | float) else "-"


def format_number(value: object) -> str:
    """Return a number for display, such as `1,234` or `0.25`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def pluralize(count: int, one: str, more: str = "") -> str:
    """Return a count with its noun, such as `1 instance` or `3 instances`."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def duration_seconds(text: str) -> int:
    """Parse `90s`, `30m`, `24h`, `7d` or `2w` to seconds. Raise :class:`ValueError`."""
    written = text.strip()
    if not _DURATION.fullmatch(written):
        raise ValueError("use a whole number and a unit (s, m, h, d or w), such as 30m or 24h")
    return int(written[:-1]) * _SECONDS[written[-1]]


def parse_moment(text: str, now: datetime, zone: tzinfo | None = None) -> datetime:
    """Parse an RFC 3339 time, a time such as `2026-11-23 09:00`, or a time of day such as `18:00`.

    A time of day is its next occurrence after `now`. Times without an offset are in `zone`, or in
    this machine's zone if `zone` is None. Raise :class:`ValueError` for any other text.
    """
    written = text.strip()
    if re.fullmatch(r"[0-2]?[0-9]:[0-5][0-9]", written):
        hour, minute = map(int, written.split(":"))
        today = now.astimezone(zone).replace(tzinfo=zone)
        found = today.replace(hour=hour, minute=minute, second=0, microsecond=0)
        if found.astimezone(UTC) <= now:
            found += timedelta(days=1)
        return found.astimezone(UTC)
    try:
        found = datetime.fromisoformat(written)
        return (found if found.tzinfo else found.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("write 18:00, 2026-11-23T09:00 or 2026-11-23T09:00:00Z") from None
