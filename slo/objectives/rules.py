"""Burn-rate rules of an SLO: presets and validation. Pure.

A burn rate that spends a share of the budget within a window is `share × period / window`. The four
rules of the SRE workbook spend 2 % in 1 h, 5 % in 6 h, 10 % in 1 d and 10 % in 3 d
(https://sre.google/workbook/alerting-on-slos/).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from controlplane.core import json_values
from controlplane.core.durations import format_canonical
from controlplane.core.json_values import Errors, add_error
from slo.arithmetic.minutes import MINUTES_A_DAY, end_of, window_minutes
from slo.arithmetic.objective import PAGE, TICKET, BurnRateRule

SEED = (
    BurnRateRule("1h", "5m", Decimal(14), PAGE),
    BurnRateRule("6h", "30m", Decimal(6), TICKET),
)
SHARES = (
    ("1h", "5m", Decimal("0.02"), PAGE),
    ("6h", "30m", Decimal("0.05"), PAGE),
    ("24h", "2h", Decimal("0.10"), TICKET),
    ("3d", "6h", Decimal("0.10"), TICKET),
)
"""Rules of the SRE workbook.

Each is a long and a short window, the share of the budget spent within the long one, a severity.
"""
PRECISION = Decimal("0.0001")
MAX_RULES = 20
FIELDS = ("long", "short", "burn_rate", "severity")
SEVERITIES = (PAGE, TICKET)
SHORT_DIVISOR = 12
"""Length of the long window as a multiple of the default short window."""


@dataclass(frozen=True)
class Preset:
    """A set of burn-rate rules to choose from; `rules` returns them for a period in days."""

    title: str
    about: str
    rules: Callable[[int], tuple[BurnRateRule, ...]]


def scale_rules(window_days: int) -> tuple[BurnRateRule, ...]:
    """Return the SRE workbook's rules scaled to a period, without those longer than the period."""
    period = window_days * MINUTES_A_DAY
    return tuple(
        BurnRateRule(
            long,
            short,
            (share * period / window_minutes(long)).quantize(PRECISION).normalize(),
            severity,
        )
        for long, short, share, severity in SHARES
        if window_minutes(long) <= period
    )


PRESETS = {
    "default": Preset(
        "Two rules",
        "1 h above 14 pages, 6 h above 6 is a ticket.",
        lambda window_days: SEED,
    ),
    "workbook": Preset(
        "Workbook, scaled to the period",
        "2 % of the budget in 1 h or 5 % in 6 h pages; 10 % in 24 h or in 3 d is a ticket.",
        scale_rules,
    ),
}


def reachable_rules(name: str, target: Decimal, window_days: int) -> list[dict[str, Any]]:
    """Return the rules of the preset `name` as documents, without rules that can never fire."""
    rules = PRESETS[name].rules(window_days)
    return [rule.document() for rule in rules if can_fire(rule.burn_rate, target)]


def can_fire(burn_rate: Decimal, target: Decimal) -> bool:
    """Return True if a burn rate above this one is possible: the highest is 1 / (1 - target)."""
    return burn_rate * (1 - target) < 1


def read_rules(raw: Any, target: Decimal, window_days: int, errors: Errors) -> list[dict[str, Any]]:
    """Validate rules and return them as documents; for None, the default rules that can fire."""
    if raw is None:
        found = reachable_rules("default", target, window_days)
        if not found:
            add_error(
                errors,
                "rules",
                f"The default rules could never fire: {_max_burn_rate(target)} Add your own rules.",
            )
        return found
    if not isinstance(raw, list) or len(raw) > MAX_RULES:
        add_error(errors, "rules", f"Must be a list of at most {MAX_RULES}.")
        return []
    rules = [
        _read_rule(f"rules.{place}", one, target, window_days, errors)
        for place, one in enumerate(raw)
    ]
    first_places: dict[Any, int] = {}
    for place, rule in enumerate(rules):
        if rule:
            key = (
                window_minutes(rule["long"]),
                window_minutes(rule["short"]),
                Decimal(str(rule["burn_rate"])),
            )
            if (first := first_places.setdefault(key, place)) != place:
                add_error(errors, f"rules.{place}", f"Same windows as rule {first}.")
    return rules


def _read_rule(
    path: str, raw: Any, target: Decimal, window_days: int, errors: Errors
) -> dict[str, Any]:
    """Validate a rule and return it as a document; if it is invalid, add errors and return {}."""
    if not isinstance(raw, Mapping):
        add_error(errors, path, "Must be an object with long, short, burn_rate and severity.")
        return {}
    errors_before = len(errors)
    json_values.refuse_unknown(path, raw, FIELDS, errors)
    long, long_minutes = _read_window(f"{path}.long", raw.get("long"), errors)
    short, short_minutes = long, long_minutes
    if raw.get("short") is not None:
        short, short_minutes = _read_window(f"{path}.short", raw["short"], errors)
    elif long_minutes:
        short_minutes = max(1, -(-long_minutes // SHORT_DIVISOR))
        short = format_canonical(end_of(short_minutes) - end_of(0))
    if long_minutes > window_days * MINUTES_A_DAY:
        add_error(errors, f"{path}.long", f"Must not be longer than the period, {window_days}d.")
    if long_minutes and short_minutes and short_minutes >= long_minutes:
        add_error(errors, f"{path}.short", "Must be shorter than the long window.")
    burn_rate = _read_burn_rate(f"{path}.burn_rate", raw.get("burn_rate"), target, errors)
    severity = json_values.read_choice(f"{path}.severity", raw.get("severity"), SEVERITIES, errors)
    if len(errors) > errors_before:
        return {}
    return {"long": long, "short": short, "burn_rate": burn_rate, "severity": severity}


def _read_window(path: str, raw: Any, errors: Errors) -> tuple[str, int]:
    """Return a window's normalized text (`1h`) and its minutes; for an invalid window, "" and 0."""
    if not isinstance(raw, str):
        add_error(errors, path, "Enter the length of the window, such as 1h.")
        return "", 0
    try:
        minutes = window_minutes(raw)
    except ValueError as error:
        add_error(errors, path, str(error))
        return "", 0
    written = raw.strip()
    return f"{int(written[:-1])}{written[-1]}", minutes


def _read_burn_rate(path: str, raw: Any, target: Decimal, errors: Errors) -> float:
    errors_before = len(errors)
    value = json_values.read_number(path, raw, None, None, errors)
    if len(errors) > errors_before:
        return 0
    if value <= 0:
        add_error(errors, path, "Must be above 0.")
    elif not can_fire(Decimal(str(value)), target):
        add_error(errors, path, f"This rule could never fire: {_max_burn_rate(target)}")
    return value


def _max_burn_rate(target: Decimal) -> str:
    most = 1 / (1 - target)
    shown = f"{most:,.4f}".rstrip("0").rstrip(".")
    return f"at a target of {target:f} a burn rate never exceeds {shown}."
