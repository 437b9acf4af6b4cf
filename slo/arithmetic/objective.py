"""An SLO's objective and its burn-rate rules, and figures that explain them.

Numbers are decimals, so that a burn rate equal to its threshold never compares as above it.
"""

from dataclasses import dataclass
from datetime import timedelta
from decimal import ROUND_FLOOR, Decimal
from functools import cached_property
from typing import Any

from controlplane.core import durations

from .minutes import MINUTES_A_DAY, window_minutes

PAGE, TICKET = "page", "ticket"
SHOWN_WINDOWS = ("5m", "30m", "1h", "6h")
"""Windows whose burn rates are always reported, whatever the rules use."""

MinuteSpan = tuple[int, int]
"""A time span (m, n) of minutes: from the end of minute m to the end of minute n."""


@dataclass(frozen=True)
class BurnRateRule:
    """A rule that fires while both windows burn strictly faster than `burn_rate`.

    `long` and `short` are the windows (`1h`, `5m`); `severity` is `page` or `ticket`.
    """

    long: str
    short: str
    burn_rate: Decimal
    severity: str

    @property
    def key(self) -> str:
        """Return the identifier of the rule within its SLO: `1h/5m>14 page`."""
        return f"{self.long}/{self.short}>{self.burn_rate.normalize():f} {self.severity}"

    def document(self) -> dict[str, Any]:
        return {
            "long": self.long,
            "short": self.short,
            "burn_rate": json_number(self.burn_rate),
            "severity": self.severity,
        }


def describe_rule_key(key: str) -> str:
    """Return a burn-rate rule's key for people: `burn rate above 14 over 1 h and 5 min`.

    A text that is no such key is returned unchanged.
    """
    windows, _, rest = key.partition(">")
    try:
        lengths = [durations.format_readable(durations.parse(one)) for one in windows.split("/")]
    except ValueError:
        return key
    if not rest:
        return key
    return f"burn rate above {rest.split(' ')[0]} over {' and '.join(lengths)}"


@dataclass(frozen=True)
class Objective:
    """A target share (0 to 1) of good events over `window_days`, and its burn-rate rules.

    A window with fewer than `min_events` events is unknown. Minutes in `excluded` spans do not
    count. With `slice_target`, minutes are counted instead of events: see :mod:`.timeslices`.
    """

    target: Decimal
    window_days: int
    rules: tuple[BurnRateRule, ...]
    min_events: int = 0
    excluded: tuple[MinuteSpan, ...] = ()
    slice_target: Decimal | None = None

    @property
    def budget(self) -> Decimal:
        return 1 - self.target

    @property
    def period(self) -> int:
        return self.window_days * MINUTES_A_DAY

    @cached_property
    def windows(self) -> tuple[str, ...]:
        """Return every window whose burn rate is reported, shortest first."""
        names = {*SHOWN_WINDOWS}
        for rule in self.rules:
            names |= {rule.long, rule.short}
        return tuple(sorted(names, key=window_minutes))


def json_number(number: Decimal) -> int | float:
    """Return a decimal as a JSON number: an integer if it is whole (14), else a float (14.4)."""
    return int(number) if number == number.to_integral_value() else float(number)


@dataclass(frozen=True)
class RuleMeaning:
    """Figures that explain a burn-rate rule, assuming even traffic.

    The rule fires `after` minutes of a complete outage, and stops firing `resets` minutes after it.
    A burn rate just at the threshold spends the share `spent` of the budget in the long window.
    """

    rule: BurnRateRule
    after: int
    spent: Decimal
    resets: int


@dataclass(frozen=True)
class ObjectiveMeaning:
    """Figures that explain an objective, assuming even traffic.

    `budget` is the share of events that may be bad: one event in `one_in`. A complete outage of the
    length `outage` spends the whole budget.
    """

    budget: Decimal
    outage: timedelta
    one_in: Decimal


def describe_objective(target: Decimal, window_days: int) -> ObjectiveMeaning:
    budget = 1 - target
    outage = timedelta(minutes=float(budget * window_days * MINUTES_A_DAY))
    return ObjectiveMeaning(budget, outage, 1 / budget)


def describe_rule(rule: BurnRateRule, target: Decimal, window_days: int) -> RuleMeaning:
    """Return figures that explain a burn-rate rule.

    Raise :class:`ValueError` for an invalid window.
    """
    # In a complete outage the bad share of a window grows by 1/length a minute, and the rule fires
    # once the longer window is strictly above the threshold.
    long, short = window_minutes(rule.long), window_minutes(rule.short)
    allowed = rule.burn_rate * (1 - target)
    after = int((max(long, short) * allowed).to_integral_value(ROUND_FLOOR)) + 1
    return RuleMeaning(rule, after, rule.burn_rate * long / (window_days * MINUTES_A_DAY), short)
