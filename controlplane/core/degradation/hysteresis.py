"""Hysteresis for degradation causes: a cause starts at once and ends after a delay."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from controlplane.core.canonical import timestamp
from controlplane.core.degradation_levels import Cause

HOLD_TIME = timedelta(seconds=60)
"""Time a cause keeps its level after it was last reported at that level."""
MAX_CAUSES = 100


@dataclass(frozen=True)
class ActiveCauses:
    """The active causes, worst first.

    `falling` maps a cause's `what` to the time (RFC 3339) of the first report that left the cause
    out or gave it a lower level.
    """

    causes: Sequence[Cause]
    falling: Mapping[str, str]


def update_causes(before: ActiveCauses, reported: Sequence[Cause], now: datetime) -> ActiveCauses:
    """Return the active causes after the report at `now`, whose list `reported` is complete."""
    previous = {one.what: one for one in before.causes}
    current = {one.what: _set_start(one, previous.get(one.what), now) for one in reported}
    falling: dict[str, str] = {}
    for what, old in previous.items():
        if what in current and current[what].level >= old.level:
            continue
        since = before.falling.get(what, timestamp(now))
        if now - datetime.fromisoformat(since) < HOLD_TIME:
            current[what], falling[what] = old, since
    causes = sorted(current.values(), key=lambda one: (-one.level, one.what))[:MAX_CAUSES]
    active = {one.what for one in causes}
    return ActiveCauses(causes, {what: since for what, since in falling.items() if what in active})


def _set_start(cause: Cause, before: Cause | None, now: datetime) -> Cause:
    """Return a cause whose `since` is its own, else that of `before`, else `now`."""
    since = cause.since or (before.since if before else "") or timestamp(now)
    return replace(cause, since=since)
