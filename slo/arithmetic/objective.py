"""An SLO as its arithmetic sees it. Shares are exact decimals: a burn rate that is just at its
threshold is not above it, whatever binary fractions make of that."""

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from .minutes import MINUTES_A_DAY, window_minutes

PAGE, TICKET = "page", "ticket"
SHOWN_WINDOWS = ("5m", "30m", "1h", "6h")
"""Burn rates are always told over these, whatever the rules look at."""

MinuteSpan = tuple[int, int]
"""After the end of the first minute, up to the end of the second."""


@dataclass(frozen=True)
class BurnRateRule:
    """It fires while both windows burn strictly faster than `burn_rate`. Windows are as written
    (`1h`, `5m`), severity is `page` or `ticket`."""

    long: str
    short: str
    burn_rate: Decimal
    severity: str

    @property
    def key(self) -> str:
        """What names the rule among those of its SLO: `1h/5m>14 page`."""
        return f"{self.long}/{self.short}>{self.burn_rate.normalize():f} {self.severity}"


@dataclass(frozen=True)
class Objective:
    """`target` is the share (0 to 1) of events that shall be good over `window_days`; below
    `min_events` nothing is known of a window. `excluded` are spans that do not count."""

    target: Decimal
    window_days: int
    rules: tuple[BurnRateRule, ...]
    min_events: int = 0
    excluded: tuple[MinuteSpan, ...] = ()

    @property
    def budget(self) -> Decimal:
        """The share of events that may be bad."""
        return 1 - self.target

    @property
    def period(self) -> int:
        """In minutes."""
        return self.window_days * MINUTES_A_DAY

    @cached_property
    def windows(self) -> tuple[str, ...]:
        """Every window whose burn rate is told, shortest first."""
        wanted = {*SHOWN_WINDOWS}
        for rule in self.rules:
            wanted |= {rule.long, rule.short}
        return tuple(sorted(wanted, key=window_minutes))
