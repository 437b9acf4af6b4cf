"""Storage of reported degradation causes, and the installation's degradation.

The state of PostgreSQL and Redis is added at each read.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.expressions import RawSQL

from controlplane.core import degradation_levels as levels
from controlplane.core import health
from controlplane.core.actors import Actor, system_actor
from controlplane.core.audit import services as audit
from controlplane.core.canonical import timestamp
from controlplane.core.degradation.models import Degradation
from controlplane.core.degradation_levels import Cause
from controlplane.core.live import change_notices
from controlplane.core.outbox import services as outbox
from controlplane.core.wakeups import wake

SUBJECT = "degradation"
EVENT = "degradation.changed"
SEVERITIES = ("info", "warning", "critical", "critical")
"""Severity of the notification, by level."""
REDIS_CACHE_SECONDS = 2.0  # Every page shows the level.
WATCHER: Actor = system_actor("degradation")
HOLD_TIME = timedelta(seconds=60)
"""Time a cause keeps its level after it was last reported at that level."""
MAX_CAUSES = 100


@dataclass(frozen=True)
class Degraded:
    """The installation's current degradation level, and its causes, worst first.

    `since` is the time when the level was reached. It is None if PostgreSQL or Redis, whose
    failures are not stored, determines the level.
    """

    level: int
    causes: tuple[Cause, ...]
    since: datetime | None

    @property
    def name(self) -> str:
        return levels.NAMES[self.level]


@dataclass(frozen=True)
class ActiveCauses:
    """The active degradation causes, worst first.

    `falling` maps a cause's `what` to the time (RFC 3339) of the first report that left the cause
    out or gave it a lower level.
    """

    causes: Sequence[Cause]
    falling: Mapping[str, str]


def load_causes() -> tuple[Cause, ...]:
    """Return the active causes as stored, without failures of PostgreSQL and Redis."""
    return _causes(Degradation.objects.get(pk=1))


def _read_row() -> tuple[Degradation, tuple[Cause, ...]]:
    is_read_only = RawSQL(levels.READ_ONLY_SQL, ())  # noqa: S611 - a constant
    # One query reads both, because every page needs the level.
    row = Degradation.objects.annotate(is_read_only=is_read_only).get(pk=1)
    own = (levels.READ_ONLY,) if row.is_read_only else ()
    return row, (*_causes(row), *own)


def select_active() -> QuerySet[Degradation]:
    """Return a queryset of the degradation row, empty while no cause is active or about to end."""
    return Degradation.objects.filter(pk=1).exclude(causes=[], falling={})


@transaction.atomic
def report(causes: Sequence[Cause], now: datetime, ended: Collection[str] = ()) -> bool:
    """Replace all stored causes by `causes`; return True if the active causes changed.

    A cause without a time gets the time of its first report. A cause that is unreported, or
    reported at a lower level, keeps its level for a minute, unless `ended` contains its `what`. A
    change wakes the data plane and open pages; a change of the level is also notified and audited.
    """
    if _update_causes(Degradation.objects.get(pk=1), causes, now, ended) is None:
        return False
    row = Degradation.objects.select_for_update().get(pk=1)
    updated = _update_causes(row, causes, now, ended)
    if updated is None:
        return False
    row.falling = dict(updated.falling)
    causes_json, before = levels.to_json(updated.causes), row.level
    if causes_json == row.causes:
        row.save(update_fields=["falling"])
        return False
    row.causes, row.revision = causes_json, row.revision + 1
    row.level = max((one.level for one in updated.causes), default=levels.NORMAL)
    row.since = row.since if row.level == before else now
    row.save()
    wake("degradation")
    change_notices.notify_changed("degradation", "installation")
    if row.level != before:
        _notify(row, before, now)
    return True


def load_degradation(*, redis_reachable: bool | None = None) -> Degraded:
    """Return the current degradation; raise DatabaseError if the database is unreachable.

    If `redis_reachable` is None, Redis is pinged.
    """
    row, known_causes = _read_row()
    reachable = _redis_answers() if redis_reachable is None else redis_reachable
    level, causes = levels.assess(True, reachable, known_causes)
    return Degraded(level, tuple(causes), row.since if level == row.level else None)


def load_document() -> dict[str, Any]:
    """Return the installation's degradation as the JSON document that the API serves."""
    return levels.build_document(True, _redis_answers(), _read_row()[1])


def _causes(row: Degradation) -> tuple[Cause, ...]:
    return tuple(Cause.from_json(document) for document in row.causes)


def _update_causes(
    row: Degradation, causes: Sequence[Cause], now: datetime, ended: Collection[str]
) -> ActiveCauses | None:
    """Return the active causes after a report of `causes`, or None if they stay as stored."""
    updated = update_causes(ActiveCauses(_causes(row), row.falling), causes, now, ended)
    same = levels.to_json(updated.causes) == row.causes and updated.falling == row.falling
    return None if same else updated


def update_causes(
    before: ActiveCauses, reported: Sequence[Cause], now: datetime, ended: Collection[str] = ()
) -> ActiveCauses:
    """Return the active causes after the report `reported`, which replaces the previous report.

    A cause that is missing in it, or has a lower level, stays for a minute, unless `ended` contains
    its `what`.
    """
    previous = {one.what: one for one in before.causes}
    current = {}
    for one in reported:
        known = previous.get(one.what)
        since = one.since or (known.since if known else "") or timestamp(now)
        current[one.what] = replace(one, since=since)
    falling: dict[str, str] = {}
    for what, old in previous.items():
        if what in ended or (what in current and current[what].level >= old.level):
            continue
        since = before.falling.get(what, timestamp(now))
        if now - datetime.fromisoformat(since) < HOLD_TIME:
            current[what], falling[what] = old, since
    causes = sorted(current.values(), key=lambda one: (-one.level, one.what))[:MAX_CAUSES]
    active = {one.what for one in causes}
    return ActiveCauses(causes, {what: since for what, since in falling.items() if what in active})


def _notify(row: Degradation, before: int, now: datetime) -> None:
    name = levels.NAMES[row.level]
    outbox.announce(
        event=EVENT,
        event_key=f"degradation:{row.revision}",
        severity=SEVERITIES[row.level],
        subject=SUBJECT,
        facts={
            "level": row.level,
            "name": name.upper(),
            "was": f"{before}, {levels.NAMES[before]}",
            "causes": " ".join(one["text"] for one in row.causes),
            "fails": "; ".join(_collect_effects(row, "fails")),
            "works": "; ".join(_collect_effects(row, "works")),
            "path": "/breakers/",
        },
        now=now,
    )
    audit.record(
        actor=WATCHER,
        action=EVENT,
        target=SUBJECT,
        before={"level": before, "name": levels.NAMES[before]},
        after={"level": row.level, "name": name, "causes": [one["what"] for one in row.causes]},
        now=now,
    )


def _collect_effects(row: Degradation, effect: str) -> list[str]:
    return list(dict.fromkeys(effect_text for one in row.causes for effect_text in one[effect]))


_redis_status: tuple[float, bool] = (float("-inf"), True)


def _redis_answers() -> bool:
    global _redis_status  # Cached, because a hanging Redis must not delay every page.
    checked_at, is_reachable = _redis_status
    if time.monotonic() - checked_at >= REDIS_CACHE_SECONDS:
        is_reachable = health.redis_answers()
        _redis_status = (time.monotonic(), is_reachable)
    return is_reachable
