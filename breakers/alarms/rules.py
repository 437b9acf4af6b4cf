"""The limits, and when an alarm begins and ends. Pure.

It begins with the first look that finds a figure beyond its limit, and ends once two minutes have
passed without one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

CLEAN = timedelta(minutes=2)
WINDOW = timedelta(minutes=5)
"""Of calls that rates are taken over."""

Key = tuple[str, str]
"""Rule and subject: what there is one alarm of at a time."""


@dataclass(frozen=True)
class Rule:
    """It does not hold above `limit`, of `samples` at least. `said` words it, with `{subject}`,
    `{value}`, `{limit}` and `{samples}` in it."""

    name: str
    severity: str
    limit: float
    said: str
    to_do: str
    samples: int = 1
    is_share: bool = True


_RATE = "{value} of the calls of {subject} %s in 5 minutes ({limit} at most; {samples} calls)"
OPEN = Rule(
    "breaker_open",
    "warning",
    0,
    "The breaker of {subject} is open in {value} of {samples} instances",
    "See whether its callee is there, and what its callers fall back on.",
    is_share=False,
)
TIMEOUTS = Rule(
    "timeout_rate",
    "warning",
    0.01,
    _RATE % "timed out",
    "See whether its callee is slow, or the timeout too short.",
    samples=20,
)
RETRIES = Rule(
    "retry_rate",
    "info",
    0.10,
    _RATE % "were repeats",
    "See what fails at first: retries hide it, and multiply the load.",
    samples=20,
)
FALLBACKS = Rule(
    "fallback_rate",
    "warning",
    0.05,
    _RATE % "fell back",
    "See why: users get less than they asked for.",
    samples=20,
)
CONCURRENCY = Rule(
    "concurrency",
    "info",
    0.80,
    "The bulkhead {subject} is {value} full ({limit} at most; {samples} instances)",
    "See what takes so long, or raise its limit.",
)
ALL: Mapping[str, Rule] = {
    rule.name: rule for rule in (OPEN, TIMEOUTS, RETRIES, FALLBACKS, CONCURRENCY)
}


@dataclass(frozen=True)
class Reading:
    """A figure beside its rule: a share of 1, or a count. `samples` is what it stands on, `text`
    what is said of it in place of the rule's words. One that is not `fresh` begins no alarm: it
    only says that nobody has heard anything else since."""

    rule: Rule
    subject: str
    value: float
    samples: int
    evidence: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    is_fresh: bool = True

    @property
    def key(self) -> Key:
        return self.rule.name, self.subject

    @property
    def is_beyond(self) -> bool:
        return self.samples >= self.rule.samples and self.value > self.rule.limit

    @property
    def said(self) -> str:
        """All of it in a sentence without a full stop."""
        if self.text:
            return self.text
        shown = percent if self.rule.is_share else count
        return self.rule.said.format(
            subject=self.subject,
            value=shown(self.value),
            limit=shown(self.rule.limit),
            samples=count(self.samples),
        )


@dataclass(frozen=True)
class Standing:
    """An alarm that is open, and when its figure was last seen beyond the limit."""

    id: int
    key: Key
    seen_at: datetime


@dataclass(frozen=True)
class Moves:
    """What a look changes: alarms that begin, that go on (by id), and that end (ids)."""

    begin: tuple[Reading, ...]
    go_on: Mapping[int, Reading]
    end: tuple[int, ...]


def moves(readings: Iterable[Reading], standing: Sequence[Standing], now: datetime) -> Moves:
    """What these readings change of the alarms that stand."""
    beyond = {one.key: one for one in readings if one.is_beyond}
    known = {one.key for one in standing}
    return Moves(
        begin=tuple(
            one for key, one in sorted(beyond.items()) if key not in known and one.is_fresh
        ),
        go_on={one.id: beyond[one.key] for one in standing if one.key in beyond},
        end=tuple(
            one.id for one in standing if one.key not in beyond and one.seen_at <= now - CLEAN
        ),
    )


def percent(share: float) -> str:
    """`4.2 %`, `100 %`."""
    return f"{round(share * 100, 1):g} %"


def count(value: float) -> str:
    return f"{value:,.0f}"
