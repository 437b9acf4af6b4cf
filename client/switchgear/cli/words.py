"""Texts, times and numbers as people read them. Pure."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Self

_DURATION = re.compile(r"[1-9][0-9]{0,8}[smhdw]", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_FIRST, _LAST = datetime(2, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)
_TURNS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""They turn the direction of what follows, so that a line may read as another one."""


@dataclass(frozen=True)
class Part:
    """A piece of text in one style; the style's names are those of the screen."""

    text: str
    style: str = ""


@dataclass(frozen=True)
class Cell:
    """Pieces in a row, with line breaks in them where lines break."""

    parts: tuple[Part, ...] = ()

    def __str__(self) -> str:
        return "".join(part.text for part in self.parts)


def cell(*pieces: object) -> Cell:
    """Of texts, parts and cells; None and empty ones are left out. Texts are cleaned."""
    parts: list[Part] = []
    for piece in pieces:
        if isinstance(piece, Cell):
            parts += piece.parts
        elif isinstance(piece, Part):
            if piece.text:
                parts.append(Part(clean(piece.text), piece.style))
        elif piece is not None and piece != "":
            parts.append(Part(clean(str(piece))))
    return Cell(tuple(parts))


def lines(*cells: object) -> Cell:
    """Each on a line of its own; those that are empty have none."""
    parts: list[Part] = []
    for one in cells:
        found = cell(one).parts
        if found:
            parts += [Part("\n"), *found] if parts else found
    return Cell(tuple(parts))


def flat(one: Cell) -> Cell:
    """The same in one line."""
    return Cell(tuple(Part(part.text.replace("\n", " "), part.style) for part in one.parts))


def joined(pieces: Iterable[object], between: str = ", ") -> Cell:
    parts: list[Part] = []
    for piece in pieces:
        found = cell(piece).parts
        if found:
            parts += [Part(between), *found] if parts else found
    return Cell(tuple(parts))


def clean(text: str) -> str:
    """Without what a terminal would obey: what others wrote must not move a cursor or turn a line.
    Line breaks become spaces."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_plain(letter) for letter in text)


def _plain(letter: str) -> str:
    if letter in "\n\r\t\v\f\u0085\u2028\u2029":
        return " "
    wrong = letter in _TURNS or unicodedata.category(letter) in ("Cc", "Cs", "Cn", "Co")
    return "\ufffd" if wrong else letter


def span(seconds: float) -> str:
    """`3 h 4 min`, `40 min`, `2 min 5 s`: rounded, as exact as it helps. Two days are in hours."""
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


def parse(at: object) -> datetime | None:
    """A moment of the API; None for anything else."""
    if not isinstance(at, str):
        return None
    try:
        moment = datetime.fromisoformat(at)
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        # Where it can't be told in another zone, it can't be shown.
        return moment if _FIRST < moment < _LAST else None
    except ValueError:
        return None


@dataclass(frozen=True)
class Clock:
    """What time it is for the console, and where the reader is: None is this machine's zone."""

    now: datetime
    zone: tzinfo | None = None

    @classmethod
    def here(cls) -> Self:
        """By this machine's clock."""
        return cls(datetime.now(UTC))

    def at(self, moment: object) -> str:
        """`14:02` for today, with the day else; the reader's own time. `-` for none."""
        found = parse(moment)
        if found is None:
            return "-"
        local, today = found.astimezone(self.zone), self.now.astimezone(self.zone)
        if local.date() == today.date():
            return f"{local:%H:%M}"
        if abs(local.date() - today.date()) < timedelta(days=6):
            return f"{local:%a %H:%M}"
        return f"{local:%d %b %H:%M}" if local.year == today.year else f"{local:%d %b %Y}"

    def exactly(self, moment: object) -> str:
        """`2026-11-22 14:02:07 +0100`."""
        found = parse(moment)
        return "-" if found is None else f"{found.astimezone(self.zone):%Y-%m-%d %H:%M:%S %z}"

    def second(self, moment: object) -> str:
        """`14:02:07`."""
        found = parse(moment) or self.now
        return f"{found.astimezone(self.zone):%H:%M:%S}"

    def ago(self, moment: object) -> str:
        """`1 h 2 min ago`; `-` for none."""
        found = parse(moment)
        return "-" if found is None else f"{span(max(0.0, self._since(found)))} ago"

    def between(self, first: object, last: object) -> str:
        """`1 h 2 min`, up to now if there is no last; `-` for none."""
        began, ended = parse(first), parse(last) or self.now
        return "-" if began is None else span(max(0.0, (ended - began).total_seconds()))

    def left(self, moment: object) -> str:
        """`in 3 h 4 min`, or `4 min ago`."""
        found = parse(moment)
        if found is None:
            return "-"
        since = self._since(found)
        return f"in {span(-since)}" if since < 0 else f"{span(since)} ago"

    def is_over(self, moment: object) -> bool:
        found = parse(moment)
        return found is not None and self._since(found) >= 0

    def _since(self, moment: datetime) -> float:
        return (self.now - moment).total_seconds()


def percent(value: object) -> str:
    """Of a number of percent: `12.5 %`."""
    return f"{value:g} %" if isinstance(value, int | float) else "-"


def ratio(value: object, digits: int = 1) -> str:
    """Of a share from 0 to 1: `84.2 %`."""
    return f"{value * 100:.{digits}f} %" if isinstance(value, int | float) else "-"


def number(value: object) -> str:
    """`1,234`, `0.25`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def many(count: int, one: str, more: str = "") -> str:
    """`1 instance`, `3 instances`."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def seconds_of(text: str) -> int:
    """Of `90s`, `30m`, `24h`, `7d`, `2w`. Raises :class:`ValueError`."""
    written = text.strip()
    if not _DURATION.fullmatch(written):
        raise ValueError("write a whole number and a unit (s, m, h, d or w), such as 30m or 24h")
    return int(written[:-1]) * _SECONDS[written[-1]]


def moment_of(text: str, now: datetime, zone: tzinfo | None = None) -> datetime:
    """Of an RFC 3339 time, `2026-11-23 09:00` by the reader's clock, or `18:00`: the next one.
    Raises :class:`ValueError`."""
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
