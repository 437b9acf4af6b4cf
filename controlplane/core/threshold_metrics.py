"""Registry of threshold metrics: figures for which operators set limits by threshold rules.

Apps register their metrics in modules named `threshold_metrics`. A metric reads the figures of all
its subjects at once; it may leave out subjects well within the limit.
"""

import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from operator import attrgetter
from typing import Any

from controlplane.core.registry import KindRegistry

ABOVE, AT_LEAST, BELOW, AT_MOST = ">", ">=", "<", "<="
RATIO, COUNT, MILLISECONDS = "ratio", "count", "ms"

# By comparison: its operator, and the limit in words.
_COMPARISONS: dict[str, tuple[Callable[[Decimal, Decimal], bool], str]] = {
    ABOVE: (operator.gt, "limit {}"),
    AT_LEAST: (operator.ge, "limit {}"),
    BELOW: (operator.lt, "minimum {}"),
    AT_MOST: (operator.le, "minimum {}"),
}
COMPARISONS = tuple(_COMPARISONS)


@dataclass(frozen=True)
class MetricQuery:
    """A threshold rule's question to its metric: which subjects are beyond the limit?

    A subject is beyond the limit if `comparison` holds between its `statistic` over `window` and
    `limit`. `window` is zero for a metric without windows; `part` is the selected part of the
    metric (`e2e`), "" for all. `since` is the time of the last query: a figure that was beyond the
    limit at any time since then counts. `standing` are the subjects with an open alert, which are
    always returned if there is data on them.
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
        """The limit as a decimal number without binary rounding: 0.01 is exactly a hundredth."""
        return Decimal(repr(self.limit))

    def beyond(self, some: float, whole: float = 1) -> bool:
        """Return True if the exact quotient of `some` and `whole` is beyond the rule's limit."""
        is_beyond, _ = _COMPARISONS[self.comparison]
        return is_beyond(Decimal(some), self.exact_limit * Decimal(whole))

    def allowed(self, show: Callable[[float], str]) -> str:
        """Return the allowed figures in words (`1 % at most`); `show` formats the limit."""
        return _COMPARISONS[self.comparison][1].format(show(self.limit))


@dataclass(frozen=True)
class MetricReading:
    """A metric's figure for one subject, computed from `samples` samples.

    `value` is None without data. `beyond` is True if it is beyond the limit, None if unknown.
    `summary` describes the value in a sentence without a full stop, `path` is the page of the
    subject, and `evidence` has the underlying counts (JSON). `acknowledged_by` is a person who
    caused the value or is aware of it. Messages get the additional `facts` and go to the message
    thread `thread`. With `is_fresh` False, it repeats the previous figure. A non-empty `ended` says
    in a sentence why there are no more figures; the subject's alert resolves at once.
    """

    subject: str
    value: float | None
    beyond: bool | None
    samples: float
    summary: str
    path: str
    service: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    acknowledged_by: str = ""
    thread: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    is_fresh: bool = True
    ended: str = ""


MetricReader = Callable[[MetricQuery, datetime], Iterable[MetricReading]]
SubjectReader = Callable[[datetime], Collection[str]]
"""Function of the time that returns the subjects whose alerts *Needs attention* leaves out.

The page has other items about these subjects.
"""


@dataclass(frozen=True)
class ThresholdMetric:
    """A figure, such as a latency, for which threshold rules can set a limit.

    `statistics` are available over windows from the first to the second of `windows`, if given.
    `about` is a description in a sentence. `parts` is the word for a part that a rule may select
    (`latency_ms:e2e`), or "". `counted_elsewhere` means that an alert about a subject only says
    what the subject's own page says, so the change feed of that page leaves it out.
    """

    name: str
    title: str
    unit: str
    statistics: tuple[str, ...]
    about: str
    read: MetricReader
    comparisons: tuple[str, ...] = COMPARISONS
    windows: tuple[timedelta, timedelta] | None = None
    parts: str = ""
    waiting: SubjectReader | None = None
    counted_elsewhere: bool = False

    def format(self, value: float) -> str:
        """Return a figure for people: `4.2 %`, `5,000 ms`, `3`."""
        if self.unit == RATIO:
            return format_percent(value)
        return f"{value:,g} ms" if self.unit == MILLISECONDS else format_count(value)


THRESHOLD_METRICS = KindRegistry[ThresholdMetric]("threshold_metrics", order=attrgetter("name"))


def find_metric(metric: str) -> tuple[ThresholdMetric, str] | None:
    """Return the metric that a rule names, and its selected part (`latency_ms:e2e`) or ""."""
    name, divided, part = metric.partition(":")
    found = THRESHOLD_METRICS.get(name)
    if found is None or (divided and not (found.parts and part)):
        return None
    return found, part


def format_percent(share: float) -> str:
    return f"{round(share * 100, 1):g} %"


def format_count(value: float) -> str:
    return f"{value:,.0f}"
