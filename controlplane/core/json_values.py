"""Strict readers for single JSON values: 5 is a number, "5" and true are not. Pure.

Each reader records problems under the value's path and continues, so one pass reports them all.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any
from urllib.parse import SplitResult, urlsplit

from . import reasons
from .errors import InvalidInput

Errors = dict[str, list[str]]

MAX_WORD_LENGTH = 120
MAX_UNKNOWN = 20
WEB = frozenset({"http", "https"})
_MISLEADING = frozenset("\u202a\u202b\u202c\u2066\u2067\u2068\u2069\u200b\u2060\ufeff")
"""Directional and zero-width characters that make a query display differently to an approver.

Reasons may contain them. Joiners are not listed: scripts and emoji need them.
"""


def put(errors: Errors, path: str, said: str) -> None:
    errors.setdefault(sayable(path), []).append(sayable(said))


def require_readable(**texts: str) -> None:
    """Raise :class:`InvalidInput`, by field, for texts that would display differently than stored.

    Applies to comments, names and the like, which appear in the trail and in messages. Empty texts
    are accepted.
    """
    said = {
        field: reasons.find_text_problems(text, called=field.replace("_", " "), advice="")
        for field, text in texts.items()
        if text.strip()
    }
    if wrong := {field: problems for field, problems in said.items() if problems}:
        raise InvalidInput(wrong)


def sayable(text: str) -> str:
    """Escape lone surrogates: YAML accepts them, but no JSON response can contain them."""
    return text.encode(errors="backslashreplace").decode()


def refuse_unknown(
    section: str, given: Mapping[str, Any], known: Iterable[str], errors: Errors
) -> None:
    """Record an error for each unknown key: a mistyped parameter would be ignored silently."""
    names = list(known)
    unknown = [str(name) for name in given if name not in names]
    # Finding the closest key takes a moment each, and the given keys may be many and long.
    for name in unknown[:MAX_UNKNOWN]:
        shown = name[:MAX_WORD_LENGTH]
        path = f"{section}.{shown}" if section else shown
        meant = get_close_matches(shown, names, n=1)
        put(errors, path, f"Unknown; did you mean {meant[0]}?" if meant else "Unknown.")
    if len(unknown) > MAX_UNKNOWN:
        put(errors, section or "fields", f"{len(unknown) - MAX_UNKNOWN:,} more are unknown.")


def whole(path: str, value: Any, least: float | None, most: float | None, errors: Errors) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        put(errors, path, "Must be a whole number, without quotes.")
        return 0
    _within(path, value, least, most, errors)
    return value


def number(path: str, value: Any, least: float | None, most: float | None, errors: Errors) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not is_finite(value):
        put(errors, path, "Must be a number, without quotes.")
        return 0.0
    _within(path, value, least, most, errors)
    return int(value) if value == int(value) else value


def choice(path: str, value: Any, choices: Sequence[str], errors: Errors) -> str:
    if value not in choices:
        put(errors, path, f"Must be one of {', '.join(choices)}.")
        return ""
    return str(value)


def text(path: str, value: Any, longest: int, errors: Errors) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        put(errors, path, "Must be a string.")
        return ""
    if len(value) > longest:
        put(errors, path, f"At most {longest} characters.")
    elif unwanted := sorted({f"U+{ord(one):04X}" for one in value if _is_unwanted(one)}):
        put(errors, path, f"Leave out control characters ({', '.join(unwanted[:5])}).")
    return value.strip()


def page(path: str, value: Any, longest: int, errors: Errors) -> str:
    """Read an optional web address; the host needs no dot, as in `https://wiki/…`."""
    url = text(path, value, longest, errors)
    if url and web_address(url) is None:
        put(errors, path, "Must be a URL starting with http:// or https://.")
    return url


def web_address(url: str) -> SplitResult | None:
    """Parse a web address; return None if it isn't one."""
    if not url.isprintable() or " " in url:
        return None
    try:
        parts = urlsplit(url)
        named = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return None
    return parts if named and parts.scheme in WEB else None


def is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # An integer too large for a float.
        return False


def _is_unwanted(character: str) -> bool:
    return character == "\r" or character in _MISLEADING or reasons.is_forbidden(character)


def _within(
    path: str, value: float, least: float | None, most: float | None, errors: Errors
) -> None:
    if (least is not None and value < least) or (most is not None and value > most):
        put(errors, path, f"Must be from {least or 0:g} to {most or 0:,g}.")
