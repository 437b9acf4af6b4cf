"""Presets of burn-rate rules. Pure.

A burn rate that spends a share of the budget within a window is `share × period / window`; the
workbook's four come from 2 % in 1 h, 5 % in 6 h, 10 % in 1 d and 10 % in 3 d
(https://sre.google/workbook/alerting-on-slos/).
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from slo.arithmetic.minutes import MINUTES_A_DAY, window_minutes
from slo.arithmetic.objective import PAGE, TICKET, BurnRateRule

Document = dict[str, Any]

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
"""Long and short window, share of the budget spent within the long one, severity."""
PRECISION = Decimal("0.0001")


@dataclass(frozen=True)
class Preset:
    """A named set of rules; `rules` returns them for a period in days."""

    title: str
    about: str
    rules: Callable[[int], tuple[BurnRateRule, ...]]


def scale_rules(window_days: int) -> tuple[BurnRateRule, ...]:
    """Return the workbook's rules for a period; windows longer than it are left out."""
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


def reachable_rules(name: str, target: Decimal, window_days: int) -> list[Document]:
    """Return the rules of a preset as documents, without those that can never fire."""
    rules = PRESETS[name].rules(window_days)
    return [rule.document() for rule in rules if can_fire(rule.burn_rate, target)]


def can_fire(burn_rate: Decimal, target: Decimal) -> bool:
    """Return whether the burn rate can be exceeded: if all events are bad, it is 1/B."""
    return burn_rate * (1 - target) < 1
