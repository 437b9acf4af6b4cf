"""Durations as users write and read them, with one unit: `90s`, `30m`, `24h`, `7d`, `2w`."""

import re
from datetime import timedelta

MAX_DURATION = timedelta(days=3650)

_UNITS = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_ACCEPTED = "Use a whole number and a unit (s, m, h, d or w), such as 90s, 30m, 24h, 7d or 2w"
_PATTERN = re.compile(r"([0-9]+)([smhdw])")
_MAX_DIGITS = 12  # More than MAX_DURATION in seconds has; int() is slow for very long texts.

_SECOND = timedelta(seconds=1)
# Largest first; two days and more read better in days, below that in hours: "24h", not "1d".
_CANONICAL = (("d", timedelta(days=2)), ("h", _UNITS["h"]), ("m", _UNITS["m"]), ("s", _SECOND))
_READABLE = (("d", _UNITS["d"]), ("h", _UNITS["h"]), ("min", _UNITS["m"]), ("s", _SECOND))


def parse(text: str) -> timedelta:
    """Parse a duration of up to `MAX_DURATION`; raise ValueError with a message for the user."""
    written = _PATTERN.fullmatch(text.strip())
    if written is None:
        raise ValueError(f"{_ACCEPTED}.")
    digits, unit = written[1].lstrip("0"), written[2]
    if not digits:
        raise ValueError(f"A duration must be longer than zero. {_ACCEPTED}.")
    if len(digits) > _MAX_DIGITS or int(digits) > MAX_DURATION // _UNITS[unit]:
        raise ValueError(f"Durations are limited to {MAX_DURATION.days} days. {_ACCEPTED}.")
    return int(digits) * _UNITS[unit]


def format_canonical(duration: timedelta) -> str:
    """Return the one spelling of a duration that `parse` reads back, such as "24h" or "7d".

    Raises :class:`ValueError` unless it is a positive whole number of seconds.
    """
    if duration <= timedelta(0) or duration % _SECOND:
        raise ValueError(f"{duration!r} is not a positive whole number of seconds.")
    unit = next(
        unit
        for unit, at_least in _CANONICAL
        if duration >= at_least and not duration % _UNITS[unit]
    )
    return f"{duration // _UNITS[unit]}{unit}"


def format_readable(duration: timedelta) -> str:
    """Return a duration for people, in at most two units: "3 d 4 h", "24 h", "1 min 30 s".

    It is rounded towards zero, given in hours up to two days, and has a minus sign if negative.
    """
    if duration < timedelta(0):
        positive = format_readable(-duration)
        return positive if positive == "0 s" else f"-{positive}"
    for place, (unit, length) in enumerate(_READABLE[:-1]):
        if duration < (2 * length if unit == "d" else length):
            continue
        count, rest = divmod(duration, length)
        smaller, smaller_length = _READABLE[place + 1]
        return f"{count} {unit}" + (f" {n} {smaller}" if (n := rest // smaller_length) else "")
    return f"{duration // _SECOND} s"
