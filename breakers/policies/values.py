"""Reading one value of a policy as strictly as JSON is: 5 is a number, "5" and true are not. Pure.

Each reader notes what is wrong under the value's path and goes on, so that all of it is told.
"""

import math
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from breakers.policies.parameters import Parameter

Errors = dict[str, list[str]]

LONGEST_WORD = 120
LONGEST_HOP = 300
MOST_IN_HOP = 10
MOST_UNKNOWN = 20


def put(errors: Errors, path: str, said: str) -> None:
    errors.setdefault(path, []).append(said)


def refuse_unknown(
    section: str, given: Mapping[str, Any], known: Iterable[str], errors: Errors
) -> None:
    """A parameter that nobody knows would be a policy that nobody follows."""
    names = list(known)
    unknown = [str(name) for name in given if name not in names]
    # To look for what was meant takes a moment each, and the given names may be many and long.
    for name in unknown[:MOST_UNKNOWN]:
        shown = name[:LONGEST_WORD]
        path = f"{section}.{shown}" if section else shown
        meant = get_close_matches(shown, names, n=1)
        put(errors, path, f"Unknown; did you mean {meant[0]}?" if meant else "Unknown.")
    if len(unknown) > MOST_UNKNOWN:
        put(errors, section or "fields", f"{len(unknown) - MOST_UNKNOWN:,} more are unknown.")


def read(parameter: Parameter, value: Any, errors: Errors) -> Any:
    """The value of a parameter, its default if it is null; what is wrong goes to `errors`."""
    path, least, most = parameter.path, parameter.least, parameter.most
    if value is None:
        default = parameter.default
        return list(default) if isinstance(default, tuple) else default
    match parameter.kind:
        case "whole":
            return whole(path, value, least, most, errors)
        case "number":
            return number(path, value, least, most, errors)
        case "choice":
            return choice(path, value, parameter.choices, errors)
        case "words":
            return words(path, value, int(most or 0), errors)
        case "chain":
            return chain(path, value, int(most or 0), errors)
        case _:
            return text(path, value, int(most or 0), errors)


def whole(path: str, value: Any, least: float | None, most: float | None, errors: Errors) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        put(errors, path, "Must be a whole number, without quotes.")
        return 0
    _within(path, value, least, most, errors)
    return value


def number(path: str, value: Any, least: float | None, most: float | None, errors: Errors) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        put(errors, path, "Must be a number, without quotes.")
        return 0.0
    _within(path, value, least, most, errors)
    return int(value) if value == int(value) else value


def are_numbers(*found: Any) -> bool:
    return all(isinstance(one, int | float) for one in found)


def choice(path: str, value: Any, choices: tuple[str, ...], errors: Errors) -> str:
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
    elif any(ord(one) < 32 and one not in "\n\t" for one in value):
        put(errors, path, "Leave out control characters.")
    return value.strip()


def words(path: str, value: Any, most: int, errors: Errors) -> list[str | int]:
    """HTTP statuses and names of errors; 503 and "503" are the same."""
    if not isinstance(value, list) or len(value) > most:
        put(errors, path, f"Must be a list of at most {most}.")
        return []
    found: list[str | int] = []
    for place, one in enumerate(value):
        said = str(one).strip() if isinstance(one, str | int) else ""
        is_status = said.isascii() and said.isdigit() and len(said) == 3
        is_name = isinstance(one, str) and 0 < len(said) <= LONGEST_WORD and said.isprintable()
        if not (is_status or is_name):
            put(errors, f"{path}.{place}", "Must be an HTTP status or the name of an error.")
        elif (word := int(said) if is_status else said) not in found:
            found.append(word)
    return found


def chain(path: str, value: Any, most: int, errors: Errors) -> list[Any]:
    """Hops in order: each a text, or an object of plain values (`provider`, `model`, …)."""
    if not isinstance(value, list) or len(value) > most:
        put(errors, path, f"Must be a list of at most {most}.")
        return []
    for place, hop in enumerate(value):
        if not (_is_hop_text(hop) or _is_hop_object(hop)):
            put(errors, f"{path}.{place}", "Must be a text, or an object of texts and numbers.")
    return list(value)


def _is_hop_text(hop: Any) -> bool:
    return isinstance(hop, str) and 0 < len(hop.strip()) <= LONGEST_HOP and hop.isprintable()


def _is_hop_object(hop: Any) -> bool:
    if not isinstance(hop, Mapping) or not 0 < len(hop) <= MOST_IN_HOP:
        return False
    return all(
        _is_hop_text(key) and (value is None or isinstance(value, bool) or _is_plain(value))
        for key, value in hop.items()
    )


def _is_plain(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST_HOP and value.isprintable()
    return isinstance(value, int | float) and _is_finite(value)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # A whole number beyond what a float can hold.
        return False


def _within(
    path: str, value: float, least: float | None, most: float | None, errors: Errors
) -> None:
    if (least is not None and value < least) or (most is not None and value > most):
        put(errors, path, f"Must be from {least or 0:g} to {most or 0:,g}.")
