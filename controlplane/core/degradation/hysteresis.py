"""Hysteresis for degradation causes. Pure.

Causes rise at once and fall with a delay, so that flapping is reported once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from controlplane.core.canonical import timestamp
from controlplane.core.degradation_levels import Cause

HELD = timedelta(seconds=60)
"""Time a cause stays active, or at its level, after it was last reported."""
MAX_KEPT = 100


@dataclass(frozen=True)
class Standing:
    """The active causes, worst first, and those on their way out.

    `falling` maps a cause's `what` to the time (RFC 3339) since when it is no longer reported, or
    only at a lower level.
    """

    causes: Sequence[Cause]
    falling: Mapping[str, str]


def after(before: Standing, reported: Sequence[Cause], now: datetime) -> Standing:
    """Return the active causes after a complete report."""
    known = {one.what: one for one in before.causes}
    found = {one.what: _dated(one, known.get(one.what), now) for one in reported}
    falling: dict[str, str] = {}
    for what, kept in known.items():
        if what in found and found[what].level >= kept.level:
            continue
        since = before.falling.get(what, timestamp(now))
        if now - datetime.fromisoformat(since) < HELD:
            found[what], falling[what] = kept, since
    causes = sorted(found.values(), key=lambda one: (-one.level, one.what))[:MAX_KEPT]
    stand = {one.what for one in causes}
    return Standing(causes, {what: since for what, since in falling.items() if what in stand})


def _dated(cause: Cause, before: Cause | None, now: datetime) -> Cause:
    """Set the cause's `since` to the earliest known time, unless it has one."""
    since = cause.since or (before.since if before else "") or timestamp(now)
    return replace(cause, since=since)
