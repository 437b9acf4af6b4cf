"""An SLO's objective and rules as exact decimals.

A burn rate exactly at its threshold is not above it; binary fractions would blur that.
"""

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

from .minutes import MINUTES_A_DAY, window_minutes

PAGE, TICKET = "page", "ticket"
SHOWN_WINDOWS = ("5m", "30m", "1h", "6h")
"""Windows whose burn rates are always reported, whatever the rules use."""

MinuteSpan = tuple[int, int]
"""From the end of the first minute up to the end of the second."""


@dataclass(frozen=True)
class BurnRateRule:
    """A rule that fires while both windows burn strictly faster than `burn_rate`.

    Windows are as written (`1h`, `5m`); `severity` is `page` or `ticket`.
    """

    long: str
    short: str
    burn_rate: Decimal
    severity: str

    @property
    def key(self) -> str:
        """Return the name of the rule among those of its SLO: `1h/5m>14 page`."""
        return f"{self.long}/{self.short}>{self.burn_rate.normalize():f} {self.severity}"

    def document(self) -> dict[str, Any]:
        """Return the rule as the API shows it."""
        return {
            "long": self.long,
            "short": self.short,
            "burn_rate": json_number(self.burn_rate),
            "severity": self.severity,
        }


@dataclass(frozen=True)
class Objective:
    """A target share (0 to 1) of good events over `window_days`, and the rules that watch it.

    A window with fewer than `min_events` is unknown. `excluded` spans do not count.
    """

    target: Decimal
    window_days: int
    rules: tuple[BurnRateRule, ...]
    min_events: int = 0
    excluded: tuple[MinuteSpan, ...] = ()

    @property
    def budget(self) -> Decimal:
        """Return the share of events that may be bad."""
        return 1 - self.target

    @property
    def period(self) -> int:
        """Return the period in minutes."""
        return self.window_days * MINUTES_A_DAY

    @cached_property
    def windows(self) -> tuple[str, ...]:
        """Return every window whose burn rate is reported, shortest first."""
        wanted = {*SHOWN_WINDOWS}
        for rule in self.rules:
            wanted |= {rule.long, rule.short}
        return tuple(sorted(wanted, key=window_minutes))


def json_number(number: Decimal) -> int | float:
    """Return a decimal as a JSON number, an integer if it is whole: 14, 14.4."""
    return int(number) if number == number.to_integral_value() else float(number)
