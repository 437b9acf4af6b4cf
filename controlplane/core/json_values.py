"""Strict readers of JSON values: 5 is a number, "5" and true are not.

A reader adds an invalid value's problem to `errors`, under the value's path, and returns a default,
so that one pass reports all problems.
"""

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any
from urllib.parse import SplitResult, urlsplit

from . import reasons
from .errors import InvalidInput

Errors = dict[str, list[str]]

MAX_WORD_LENGTH = 120
MAX_UNKNOWN = 20
WEB_SCHEMES = frozenset({"http", "https"})
_MISLEADING = frozenset("\u202a\u202b\u202c\u2066\u2067\u2068\u2069\u200b\u2060\ufeff")
"""Directional and zero-width characters, except the joiners that scripts and emoji need.

They make a query display differently than stored. Reasons may contain them.
"""


def add_error(errors: Errors, path: str, problem: str) -> None:
    errors.setdefault(escape_surrogates(path), []).append(escape_surrogates(problem))


def require_readable(**texts: str) -> None:
    """Raise InvalidInput if a text is too long or has control characters; `texts` are by field."""
    problems = {
        field: reasons.find_text_problems(text, called=field.replace("_", " "), advice="")
        for field, text in texts.items()
        if text.strip()
    }
    if any(problems.values()):
        raise InvalidInput({field: found for field, found in problems.items() if found})


def escape_surrogates(text: str) -> str:
    """Escape lone surrogates, which YAML accepts but JSON responses can't contain."""
    return text.encode(errors="backslashreplace").decode()


def refuse_unknown(
    section: str, document: Mapping[str, Any], known: Iterable[str], errors: Errors
) -> None:
    """Add an error for each unknown key, because a misspelled key would otherwise be ignored."""
    names = list(known)
    unknown = [str(name) for name in document if name not in names]
    # Limited, because finding the closest key is slow for many or long keys.
    for name in unknown[:MAX_UNKNOWN]:
        shown = name[:MAX_WORD_LENGTH]
        path = f"{section}.{shown}" if section else shown
        close_matches = get_close_matches(shown, names, n=1)
        add_error(
            errors,
            path,
            f"Unknown; did you mean {close_matches[0]}?" if close_matches else "Unknown.",
        )
    if len(unknown) > MAX_UNKNOWN:
        add_error(errors, section or "fields", f"{len(unknown) - MAX_UNKNOWN:,} more are unknown.")


def read_integer(
    path: str, value: Any, least: float | None, most: float | None, errors: Errors
) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        add_error(errors, path, "Must be a whole number, without quotes.")
        return 0
    _check_range(path, value, least, most, errors)
    return value


def read_number(
    path: str, value: Any, least: float | None, most: float | None, errors: Errors
) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not is_finite(value):
        add_error(errors, path, "Must be a number, without quotes.")
        return 0.0
    _check_range(path, value, least, most, errors)
    return int(value) if value == int(value) else value


def read_choice(path: str, value: Any, choices: Sequence[str], errors: Errors) -> str:
    if value not in choices:
        add_error(errors, path, f"Must be one of {', '.join(choices)}.")
        return ""
    return str(value)


def read_text(path: str, value: Any, longest: int, errors: Errors) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        add_error(errors, path, "Must be a string.")
        return ""
    if len(value) > longest:
        add_error(errors, path, f"At most {longest} characters.")
    elif forbidden := sorted({f"U+{ord(it):04X}" for it in value if _is_forbidden(it)}):
        add_error(errors, path, f"Leave out control characters ({', '.join(forbidden[:5])}).")
    return value.strip()


def read_url(path: str, value: Any, longest: int, errors: Errors) -> str:
    """Read an HTTP or HTTPS URL, or ""; hosts without a dot are valid (`https://wiki/…`)."""
    url = read_text(path, value, longest, errors)
    check_web_url(path, url, errors)
    return url


def check_web_url(path: str, url: str, errors: Errors) -> None:
    if url and parse_web_url(url) is None:
        add_error(errors, path, "Must be a URL starting with http:// or https://.")


def parse_web_url(url: str, schemes: Container[str] = WEB_SCHEMES) -> SplitResult | None:
    """Return the parts of a valid URL with a host and one of the schemes, else None."""
    if not url.isprintable() or " " in url:
        return None
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return None
    return parts if has_host and parts.scheme in schemes else None


def is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # An integer too large for a float.
        return False


def _is_forbidden(character: str) -> bool:
    return character == "\r" or character in _MISLEADING or reasons.is_forbidden(character)


def _check_range(
    path: str, value: float, least: float | None, most: float | None, errors: Errors
) -> None:
    if (least is not None and value < least) or (most is not None and value > most):
        add_error(errors, path, f"Must be from {least or 0:g} to {most or 0:,g}.")
