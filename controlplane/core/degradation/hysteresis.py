"""How causes rise at once and fall late, so that what flaps is told of once. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from controlplane.core.canonical import timestamp
from controlplane.core.degradation_levels import Cause

HELD = timedelta(seconds=60)
"""A cause stands for so long after it was last reported, and at its level as long."""
MAX_KEPT = 100


@dataclass(frozen=True)
class Standing:
    """The causes that stand, the worst first, each with the time since when it is known; and since
    when (RFC 3339) some of them are gone or lighter, by what they are of."""

    causes: Sequence[Cause]
    falling: Mapping[str, str]


def after(before: Standing, reported: Sequence[Cause], now: datetime) -> Standing:
    """What stands once these are reported, and nothing beside them."""
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
    """With the time since when it is known, unless it says so itself."""
    since = cause.since or (before.since if before else "") or timestamp(now)
    return replace(cause, since=since)
