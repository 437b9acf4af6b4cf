"""Validation of the burn-rate rules of an SLO. Pure."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from controlplane.core import json_values
from controlplane.core.durations import format_canonical
from controlplane.core.json_values import Errors, add_error
from slo.arithmetic.minutes import MINUTES_A_DAY, end_of, window_minutes
from slo.arithmetic.objective import PAGE, TICKET

from . import presets

MAX_RULES = 20
FIELDS = ("long", "short", "burn_rate", "severity")
SEVERITIES = (PAGE, TICKET)
SHORT_DIVISOR = 12
"""The default short window is the long one divided by this."""


def read_rules(
    given: Any, target: Decimal, window_days: int, errors: Errors
) -> list[dict[str, Any]]:
    """Return rules as documents: the default ones that can fire for None, none for `[]`."""
    if given is None:
        found = presets.reachable_rules("default", target, window_days)
        if not found:
            add_error(
                errors,
                "rules",
                f"The usual ones could never fire: {_max_burn_rate(target)} Give others.",
            )
        return found
    if not isinstance(given, list) or len(given) > MAX_RULES:
        add_error(errors, "rules", f"Must be a list of at most {MAX_RULES}.")
        return []
    rules = [
        _rule(f"rules.{place}", one, target, window_days, errors) for place, one in enumerate(given)
    ]
    seen: dict[Any, int] = {}
    for place, rule in enumerate(rules):
        if rule:
            key = (
                window_minutes(rule["long"]),
                window_minutes(rule["short"]),
                Decimal(str(rule["burn_rate"])),
            )
            if (first := seen.setdefault(key, place)) != place:
                add_error(errors, f"rules.{place}", f"Looks at the same as rule {first}.")
    return rules


def _rule(
    path: str, given: Any, target: Decimal, window_days: int, errors: Errors
) -> dict[str, Any]:
    """Return a rule as a document, empty if it is invalid."""
    if not isinstance(given, Mapping):
        add_error(errors, path, "Must be an object with long, short, burn_rate and severity.")
        return {}
    noted = len(errors)
    json_values.refuse_unknown(path, given, FIELDS, errors)
    long, long_minutes = _window(f"{path}.long", given.get("long"), errors)
    short, short_minutes = long, long_minutes
    if given.get("short") is not None:
        short, short_minutes = _window(f"{path}.short", given["short"], errors)
    elif long_minutes:
        short_minutes = max(1, -(-long_minutes // SHORT_DIVISOR))
        short = format_canonical(end_of(short_minutes) - end_of(0))
    if long_minutes > window_days * MINUTES_A_DAY:
        add_error(errors, f"{path}.long", f"Must not be longer than the period, {window_days}d.")
    if long_minutes and short_minutes and short_minutes >= long_minutes:
        add_error(errors, f"{path}.short", "Must be shorter than the long window.")
    burn_rate = _burn_rate(f"{path}.burn_rate", given.get("burn_rate"), target, errors)
    severity = json_values.read_choice(
        f"{path}.severity", given.get("severity"), SEVERITIES, errors
    )
    if len(errors) > noted:
        return {}
    return {"long": long, "short": short, "burn_rate": burn_rate, "severity": severity}


def _window(path: str, given: Any, errors: Errors) -> tuple[str, int]:
    """Return the window as written, and its minutes; 0 if it is invalid."""
    if not isinstance(given, str):
        add_error(errors, path, "Write how long the window is, such as 1h.")
        return "", 0
    try:
        minutes = window_minutes(given)
    except ValueError as error:
        add_error(errors, path, str(error))
        return "", 0
    written = given.strip()
    return f"{int(written[:-1])}{written[-1]}", minutes


def _burn_rate(path: str, given: Any, target: Decimal, errors: Errors) -> float:
    noted = len(errors)
    value = json_values.read_number(path, given, None, None, errors)
    if len(errors) > noted:
        return 0
    if value <= 0:
        add_error(errors, path, "Must be above 0.")
    elif not presets.can_fire(Decimal(str(value)), target):
        add_error(errors, path, f"It could never fire: {_max_burn_rate(target)}")
    return value


def _max_burn_rate(target: Decimal) -> str:
    """Return a sentence with the highest burn rate there can be."""
    most = 1 / (1 - target)
    shown = f"{most:,.4f}".rstrip("0").rstrip(".")
    return f"at a target of {target:f} a burn rate never exceeds {shown}."
