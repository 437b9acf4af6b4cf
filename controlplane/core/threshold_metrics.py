"""What threshold rules compare with a limit: measures, which apps register in a module named
`measures`. Whoever judges the rules knows none of them by name.

A measure reads all its subjects at once, and says of each figure whether it is beyond the limit, by
exact arithmetic of its own. Subjects that are well within it may be left out.
"""

import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.utils.module_loading import autodiscover_modules

ABOVE, AT_LEAST, BELOW, AT_MOST = ">", ">=", "<", "<="
COMPARISONS = (ABOVE, AT_LEAST, BELOW, AT_MOST)
RATIO, COUNT, MILLISECONDS = "ratio", "count", "ms"

_ALLOWED = {
    ABOVE: "{} at most",
    AT_LEAST: "less than {}",
    BELOW: "{} at least",
    AT_MOST: "more than {}",
}


@dataclass(frozen=True)
class Asked:
    """What a rule wants to know: which subjects have a figure that compares so with `limit`.

    `statistic` over `window` (zero for a measure that has none), of one `part` of it if that is
    named. `since` is when it was asked last: what came and went after that counts, too. Of the
    subjects in `standing` something is wanted in any case, if anything is known of them.
    """

    statistic: str
    comparison: str
    limit: float
    window: timedelta = timedelta()
    part: str = ""
    since: datetime | None = None
    standing: Collection[str] = ()

    @property
    def exact_limit(self) -> Decimal:
        """The limit as it was written: 0.01 is a hundredth."""
        return Decimal(repr(self.limit))

    def beyond(self, some: float, whole: float = 1) -> bool:
        """Whether `some` of `whole` (above zero) is beyond the limit, exactly."""
        return compare(Decimal(some), self.comparison, self.exact_limit * Decimal(whole))

    def allowed(self, show: Callable[[float], str]) -> str:
        """What the rule allows, in words: `1 % at most`."""
        return _ALLOWED[self.comparison].format(show(self.limit))


@dataclass(frozen=True)
class Reading:
    """The figure of one subject, which rests on so many `samples`.

    `beyond` is whether it is beyond the limit, null where that can't be told; `value` is null where
    nothing is known. `said` is a sentence without a full stop, `path` the page of the subject,
    `evidence` what was counted (JSON), `acknowledged_by` who brought it about or knows of it.
    Messages go to `thread` and say `facts` besides. One that is not fresh only says that nobody has
    heard anything else since.
    """

    subject: str
    value: float | None
    beyond: bool | None
    samples: float
    said: str
    path: str
    service: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    acknowledged_by: str = ""
    thread: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    is_fresh: bool = True


Read = Callable[[Asked, datetime], Iterable[Reading]]
Waiting = Callable[[datetime], Collection[str]]
"""Subjects that wait for a person just now by themselves: an alert need not say it once more."""


@dataclass(frozen=True)
class Measure:
    """`statistics` are what may be asked of it, over windows from the first to the second of
    `windows`, if it has any. `about` says in a sentence what it is of; `parts` what a part of it
    is called, where a rule may look at one alone (`latency_ms:e2e`), else nothing."""

    name: str
    title: str
    unit: str
    statistics: tuple[str, ...]
    about: str
    read: Read
    comparisons: tuple[str, ...] = COMPARISONS
    windows: tuple[timedelta, timedelta] | None = None
    parts: str = ""
    waiting: Waiting | None = None

    def shown(self, value: float) -> str:
        """A figure of it for people: `4.2 %`, `5,000 ms`, `3`."""
        if self.unit == RATIO:
            return percent(value)
        return f"{value:,g} ms" if self.unit == MILLISECONDS else count(value)


_registered: dict[str, Measure] = {}


def register(measure: Measure) -> Measure:
    """Offer a measure to rules; done in the `measures` module of its app."""
    _registered[measure.name] = measure
    return measure


def registered() -> Mapping[str, Measure]:
    """Every measure of every installed app, by name."""
    _discover()
    return dict(sorted(_registered.items()))


def find(metric: str) -> tuple[Measure, str] | None:
    """The measure that a rule's `metric` names, and the part of it (`latency_ms:e2e`), if any."""
    name, divided, part = metric.partition(":")
    measure = registered().get(name)
    if measure is None or (divided and not (measure.parts and part)):
        return None
    return measure, part


def compare(value: Decimal, comparison: str, limit: Decimal) -> bool:
    if comparison == ABOVE:
        return value > limit
    if comparison == AT_LEAST:
        return value >= limit
    return value < limit if comparison == BELOW else value <= limit


def percent(share: float) -> str:
    """`4.2 %`, `100 %`."""
    return f"{round(share * 100, 1):g} %"


def count(value: float) -> str:
    return f"{value:,.0f}"


@functools.cache
def _discover() -> None:
    autodiscover_modules("threshold_metrics")
