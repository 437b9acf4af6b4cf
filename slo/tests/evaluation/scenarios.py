"""SLOs for evaluation tests: counted minute by minute, and evaluated at chosen moments."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from controlplane.core.models import OutboxMessage
from slo.alerts import lifecycle
from slo.arithmetic.hysteresis import FiringRule
from slo.arithmetic.minutes import EVALUATION_DELAY, end_of
from slo.evaluation import tick
from slo.models import Alert, CounterMinute, Slo
from slo.tests import factories

from .histories import MinuteEvents, Past, steady_traffic

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
NOON = 29_700_000
"""A minute number; counting begins hours before it."""
HOURS = 7
PAGE = {"long": "1h", "short": "5m", "burn_rate": 14, "severity": "page"}
TICKET = {"long": "6h", "short": "30m", "burn_rate": 6, "severity": "ticket"}
BAD = MinuteEvents(5000, 10_000)
GOOD = MinuteEvents(0, 10_000)
NONE = MinuteEvents(is_covered=False)


def create_burning_slo(
    name: str = "core-availability", after: Sequence[MinuteEvents] = (), **fields: Any
) -> Slo:
    """Return an SLO with a page rule, fine for hours until noon, followed by these minutes."""
    slo = factories.slo(name, **{"rules": [PAGE], **fields})
    count(slo, after)
    return slo


def count(slo: Slo, after: Sequence[MinuteEvents]) -> None:
    """Add these minutes to an SLO, after the hours in which it was fine."""
    past = Past([*steady_traffic(HOURS * 60), *after], begin=NOON - HOURS * 60 + 1)
    rows = [(minute, past.values_at(minute)) for minute in range(past.begin - 1, past.last + 1)]
    sli = factories.counted(slo, [(minute, one.good, one.total) for minute, one in rows])
    for minute, one in rows[HOURS * 60 :]:
        CounterMinute.objects.filter(sli=sli, minute=minute).update(covered=one.covered)


def due_at(minute: int) -> datetime:
    """Return the moment at which this minute is evaluated."""
    return end_of(minute) + EVALUATION_DELAY


def evaluate_minutes(first: int, last: int | None = None) -> None:
    """Evaluate these minutes, each in its time."""
    for minute in range(first, (first if last is None else last) + 1):
        tick.evaluate_due_minutes(due_at(minute))


def update_thresholds(now: datetime, firing: Sequence[FiringRule] = (), **more: Any) -> int:
    """Open and resolve alerts of threshold rules, ten seconds after the last evaluation."""
    changes = {"unknown": (), "gone": {}, **more}
    changed = lifecycle.update_alerts(
        kind="threshold", firing=firing, before=now - 10 * SECOND, now=now, **changes
    )
    lifecycle.notify_and_act("threshold", now)
    return changed


def alert() -> Alert:
    return Alert.objects.get()


def list_messages(event: str) -> list[OutboxMessage]:
    return list(OutboxMessage.objects.filter(event=event).order_by("pk"))
