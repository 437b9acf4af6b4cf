"""When an alert begins, goes on and ends. Pure.

It begins with the first look that finds its rule firing. It ends once the rule has not fired for
two minutes in which something was known of it: time in which nothing is known does not count.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

RESOLVE_AFTER = timedelta(minutes=2)

AlertKey = tuple[str, str]
"""Rule and subject: what there is one open alert of at a time."""


@dataclass(frozen=True)
class FiringRule:
    """A rule that fires for a subject, just now.

    `severity` is critical, warning or info; `label` what the rule calls it (`page`, `ticket`, or
    empty). `said` is a sentence without a full stop, `path` the page of the subject, `evidence`
    what was counted (JSON). Where `acknowledged_by` names somebody, its alert begins acknowledged:
    that person brought it about. Its messages go to the thread of `thread`, if it names one, and
    say `facts` besides (`owner`, `runbook`, `to_do`).
    """

    rule: str
    subject: str
    service: str
    severity: str
    label: str
    said: str
    path: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    slo_id: int | None = None
    threshold_id: int | None = None
    acknowledged_by: str = ""
    thread: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> AlertKey:
        return self.rule, self.subject


@dataclass(frozen=True)
class OpenAlert:
    """An alert that is open. Its rule fired last at `firing_at`, or a little before, if nothing was
    known of it since for some time."""

    id: int
    key: AlertKey
    firing_at: datetime


@dataclass(frozen=True)
class AlertChanges:
    """What a look changes: alerts that begin, that go on (by id), whose end is put off as nothing
    is known (by id, until when they count as firing), and that end (ids)."""

    begin: tuple[FiringRule, ...]
    go_on: Mapping[int, FiringRule]
    put_off: Mapping[int, datetime]
    end: tuple[int, ...]


def plan_changes(
    firing: Sequence[FiringRule],
    unknown: Collection[AlertKey],
    standing: Sequence[OpenAlert],
    *,
    at: datetime,
    before: datetime,
    missed: timedelta = timedelta(0),
) -> AlertChanges:
    """What a look at `at` changes of the alerts that stand; `before` is when it was looked last.

    So much time was `missed` before that: nothing is known of it.
    """
    found = {one.key: one for one in firing}
    known = {one.key for one in standing}
    quiet = [one for one in standing if one.key not in found]
    elapsed = max(timedelta(0), at - before)
    until: dict[int, datetime] = {}
    for one in quiet:
        more = missed + (elapsed if one.key in unknown else timedelta(0))
        # What is ahead is from before the clock was set back.
        until[one.id] = min(at, one.firing_at + more)
    ended = tuple(
        one.id for one in quiet if one.key not in unknown and until[one.id] <= at - RESOLVE_AFTER
    )
    return AlertChanges(
        begin=tuple(one for key, one in found.items() if key not in known),
        go_on={one.id: found[one.key] for one in standing if one.key in found},
        put_off={
            one.id: until[one.id]
            for one in quiet
            if until[one.id] != one.firing_at and one.id not in ended
        },
        end=ended,
    )
