"""Stores reported degradation causes, and returns the installation's degradation.

The monitor reports all causes; PostgreSQL's and Redis' state is added at each read.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.expressions import RawSQL

from controlplane.core import degradation_levels as levels
from controlplane.core import health
from controlplane.core.actors import Actor, system
from controlplane.core.audit import services as audit
from controlplane.core.degradation.models import Degradation
from controlplane.core.degradation_levels import Cause
from controlplane.core.live import change_notices
from controlplane.core.outbox import services as outbox
from controlplane.core.wakeups import wake

from . import hysteresis

SUBJECT = "degradation"
EVENT = "degradation.changed"
SEVERITIES = ("info", "warning", "critical", "critical")
"""Severity of the notification, by level."""
REDIS_ASKED_EVERY = 2.0  # seconds; every page shows the level
WATCHER: Actor = system("degradation")


@dataclass(frozen=True)
class Degraded:
    """The level with its causes, worst first.

    `since` is the time the reported causes reached this level; None while the only causes are
    PostgreSQL and Redis.
    """

    level: int
    causes: tuple[Cause, ...]
    since: datetime | None

    @property
    def name(self) -> str:
        return levels.NAMES[self.level]


def known() -> tuple[Cause, ...]:
    """Return the causes reported last."""
    return _causes(Degradation.objects.get(pk=1))


def _read() -> tuple[Degradation, tuple[Cause, ...]]:
    """Return the row, and its causes with a read-only database, by one query."""
    is_read_only = RawSQL(levels.READ_ONLY_SQL, ())  # noqa: S611 - a constant
    row = Degradation.objects.annotate(is_read_only=is_read_only).get(pk=1)
    own = (levels.READ_ONLY,) if row.is_read_only else ()
    return row, (*_causes(row), *own)


def standing() -> QuerySet[Degradation]:
    """Return the row if any cause is active or about to end, else an empty queryset."""
    return Degradation.objects.filter(pk=1).exclude(causes=[], falling={})


@transaction.atomic
def report(causes: Sequence[Cause], now: datetime) -> bool:
    """Replace the reported causes; return False if nothing visible changed.

    The report is complete, apart from PostgreSQL and Redis. A cause without a time gets the time of
    its first report; one that is no longer reported, or only at a lower level, stays active for a
    minute. A change wakes the data plane and open pages; a change of the level is notified and
    audited.
    """
    if _stand(Degradation.objects.get(pk=1), causes, now) is None:
        return False
    row = Degradation.objects.select_for_update().get(pk=1)
    stand = _stand(row, causes, now)
    if stand is None:
        return False
    row.falling = dict(stand.falling)
    told, before = levels.plain(stand.causes), row.level
    if told == row.causes:
        row.save(update_fields=["falling"])
        return False
    row.causes, row.revision = told, row.revision + 1
    row.level = max((one.level for one in stand.causes), default=levels.NORMAL)
    row.since = row.since if row.level == before else now
    row.save()
    wake("degradation")
    change_notices.notify_changed("degradation", "installation")
    if row.level != before:
        _tell(row, before, now)
    return True


def current(*, redis_reachable: bool | None = None) -> Degraded:
    """Return the degradation as this process sees it; the database must be reachable."""
    row, known_causes = _read()
    reachable = _redis_answers() if redis_reachable is None else redis_reachable
    level, causes = levels.judge(True, reachable, known_causes)
    return Degraded(level, tuple(causes), row.since if level == row.level else None)


def picture() -> dict[str, Any]:
    """Return the degradation as the API's document."""
    return levels.picture(True, _redis_answers(), _read()[1])


def _causes(row: Degradation) -> tuple[Cause, ...]:
    return tuple(Cause.of(document) for document in row.causes)


def _stand(row: Degradation, causes: Sequence[Cause], now: datetime) -> hysteresis.Standing | None:
    """Return the new set of causes; None if it equals the row's."""
    stand = hysteresis.after(hysteresis.Standing(_causes(row), row.falling), causes, now)
    same = levels.plain(stand.causes) == row.causes and stand.falling == row.falling
    return None if same else stand


def _tell(row: Degradation, before: int, now: datetime) -> None:
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
            "fails": "; ".join(_each(row, "fails")),
            "works": "; ".join(_each(row, "works")),
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


def _each(row: Degradation, effect: str) -> list[str]:
    """Return the distinct effects of all causes, in order."""
    return list(dict.fromkeys(said for one in row.causes for said in one[effect]))


_redis_seen: tuple[float, bool] = (float("-inf"), True)


def _redis_answers() -> bool:
    """Return True if Redis answers; cached, because a hanging Redis must not delay every page."""
    global _redis_seen
    asked_at, answers = _redis_seen
    if time.monotonic() - asked_at >= REDIS_ASKED_EVERY:
        answers = health.redis_answers()
        _redis_seen = (time.monotonic(), answers)
    return answers
