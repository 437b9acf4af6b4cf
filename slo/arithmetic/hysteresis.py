"""Hysteresis of alerts: rules for opening, continuing and resolving them. Pure.

An alert opens at the first evaluation at which its rule fires. It resolves once the rule has not
fired for two known minutes; unknown time does not count.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

RESOLVE_AFTER = timedelta(minutes=2)

AlertKey = tuple[str, str]
"""The rule and subject of an alert; at most one alert is open for each pair."""


@dataclass(frozen=True)
class FiringRule:
    """A rule that fires for a subject now, and the content of its alert.

    `severity` is critical, warning or info; `label` is `page` or `ticket` for a burn-rate rule,
    else empty. `summary` is the message without a full stop, `path` the subject's page, `evidence`
    the measured figures (JSON). `acknowledged_by` is the person who knowingly caused the alert, if
    any; it then opens acknowledged. `thread` is the message thread of notifications, empty for a
    new one. `facts` (`owner`, `runbook`, `to_do`) are included in notifications.
    """

    rule: str
    subject: str
    service: str
    severity: str
    label: str
    summary: str
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
    """An open alert.

    `firing_at` is when its rule last fired, plus the time since then in which its state was
    unknown.
    """

    id: int
    key: AlertKey
    firing_at: datetime


@dataclass(frozen=True)
class AlertChanges:
    """The changes that an evaluation makes to alerts.

    `opened` are the rules whose alerts open, `resolved` the ids of alerts that resolve. `continued`
    maps the id of each alert that still fires to its rule. `postponed` maps alert ids to a later
    `firing_at`: unknown time postpones their resolving.
    """

    opened: tuple[FiringRule, ...]
    continued: Mapping[int, FiringRule]
    postponed: Mapping[int, datetime]
    resolved: tuple[int, ...]


def plan_changes(
    firing: Sequence[FiringRule],
    unknown: Collection[AlertKey],
    open_alerts: Sequence[OpenAlert],
    *,
    at: datetime,
    before: datetime,
    missed: timedelta = timedelta(0),
) -> AlertChanges:
    """Return which alerts open, continue, and resolve by an evaluation at `at`.

    An alert resolves after enough time in which its rule was evaluated and did not fire. For alerts
    with `unknown` keys, the time since `before`, the previous evaluation, does not count. `missed`
    is a length of time before that in which nothing was evaluated; it counts for no alert.
    """
    found = {one.key: one for one in firing}
    known = {one.key for one in open_alerts}
    quiet = [one for one in open_alerts if one.key not in found]
    elapsed = max(timedelta(0), at - before)
    until: dict[int, datetime] = {}
    for one in quiet:
        more = missed + (elapsed if one.key in unknown else timedelta(0))
        # A later `firing_at` was written before the clock was set back.
        until[one.id] = min(at, one.firing_at + more)
    ended = tuple(
        one.id for one in quiet if one.key not in unknown and until[one.id] <= at - RESOLVE_AFTER
    )
    return AlertChanges(
        opened=tuple(one for key, one in found.items() if key not in known),
        continued={one.id: found[one.key] for one in open_alerts if one.key in found},
        postponed={
            one.id: until[one.id]
            for one in quiet
            if until[one.id] != one.firing_at and one.id not in ended
        },
        resolved=ended,
    )
