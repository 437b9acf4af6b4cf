"""Histories as tests write them: the events of each minute, summed to counters."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from slo.arithmetic.objective import BurnRateRule, MinuteSpan, Objective
from slo.arithmetic.windows import ZERO, CounterValues


@dataclass(frozen=True)
class MinuteEvents:
    """One minute: how many of how many events were bad, and whether samples covered it."""

    bad: float = 0
    total: float = 0
    is_covered: bool = True


NOTHING_KNOWN = MinuteEvents(is_covered=False)


@dataclass
class Past:
    """Consecutive minutes; number 0 ends at minute `begin`."""

    minutes: Sequence[MinuteEvents]
    begin: int = 0
    looked_up: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._sums = [ZERO]
        for one in self.minutes:
            last = self._sums[-1]
            good = last.good + one.total - one.bad
            covered = last.covered + int(one.is_covered)
            self._sums.append(CounterValues(good, last.total + one.total, covered))

    def values_at(self, minute: int) -> CounterValues:
        self.looked_up.add(minute)
        place = minute - self.begin + 1
        return self._sums[min(max(place, 0), len(self.minutes))]

    @property
    def last(self) -> int:
        return self.begin + len(self.minutes) - 1


def steady_traffic(
    minutes: int, share: str = "0.0002", traffic: int = 10_000
) -> list[MinuteEvents]:
    """Return minutes of even traffic with this share of bad events."""
    return [MinuteEvents(float(Decimal(share) * traffic), traffic)] * minutes


def make_objective(
    *rules: BurnRateRule,
    target: str = "0.999",
    days: int = 30,
    min_events: int = 0,
    excluded: Iterable[MinuteSpan] = (),
) -> Objective:
    return Objective(Decimal(target), days, rules, min_events, tuple(excluded))


def rule(long: str, short: str, burn_rate: str, severity: str = "page") -> BurnRateRule:
    return BurnRateRule(long, short, Decimal(burn_rate), severity)
