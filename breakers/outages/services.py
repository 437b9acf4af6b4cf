"""Periodic task that begins, acts upon and ends outages of dependencies with an outage policy."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Q, QuerySet

from breakers import publication
from breakers.models import Alarm, BreakerState, Dependency
from breakers.names import format_instances
from breakers.states import unhealthy

from . import actions
from .decision import (
    ENDING_MOVES,
    ObservedBreakers,
    OngoingOutage,
    OutageMove,
    OutagePolicy,
    decide_move,
)

RULE = "outage"
REFRESH_EVERY = timedelta(seconds=30)
"""Interval at which an ongoing outage's `seen_at` is written."""

log = structlog.get_logger(__name__)


def list_pending() -> list[QuerySet[Any]]:
    """Return queries for the rows that :func:`watch_outages` needs; without any, it need not run.

    They find open breakers and ongoing outages.
    """
    return [
        BreakerState.objects.filter(state="open"),
        Alarm.objects.filter(rule=RULE, closed_at__isnull=True),
    ]


def watch_outages(now: datetime) -> int:
    """Begin, act upon and end outages according to the latest reports; return how many changed."""
    lasting = {one.subject: one for one in Alarm.objects.filter(rule=RULE, closed_at__isnull=True)}
    is_open = BreakerState.objects.filter(state="open").values("dependency")
    has_policy = Q(removed_at__isnull=True, pk__in=is_open) & ~Q(on_outage={})
    is_lasting = Q(pk__in=Dependency.objects.select_named(lasting).values("pk"))
    watched = list(Dependency.objects.filter(has_policy | is_lasting).order_by("pk"))
    observed = _observe_breakers([one.pk for one in watched], now)
    done = 0
    for one in watched:
        breakers = observed.get(one.pk, ObservedBreakers())
        try:
            done += _handle(one, breakers, lasting.get(one.name), now)
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            log.exception("outage.failed", dependency=one.name)
    return done


def _observe_breakers(ids: Sequence[int], now: datetime) -> dict[int, ObservedBreakers]:
    if not ids:
        return {}
    found = unhealthy.find_unhealthy(now, also=ids)
    return {
        pk: ObservedBreakers(one.instances, one.open, one.half_open, one.blinded)
        for pk in ids
        if (one := found.get(pk))
    }


def _handle(
    dependency: Dependency, observed: ObservedBreakers, alarm: Alarm | None, now: datetime
) -> bool:
    """Carry out the next step of a dependency's outage; return True if anything changed."""
    move = decide_move(_outage_policy(dependency), observed, _ongoing_outage(alarm), now)
    if move == OutageMove.NOTHING:
        return False
    if move == OutageMove.SEE:
        if alarm is not None and now - alarm.seen_at >= REFRESH_EVERY:
            Alarm.objects.filter(pk=alarm.pk, closed_at__isnull=True).update(seen_at=now)
        return False
    with transaction.atomic():
        return _handle_locked(dependency.pk, now)


def _handle_locked(pk: int, now: datetime) -> bool:
    """Lock the registry, then decide again, as data may have changed, and carry out the step."""
    publication.lock()
    dependency = Dependency.objects.get(pk=pk)
    observed = _observe_breakers([pk], now).get(pk, ObservedBreakers())
    policy = _outage_policy(dependency)
    alarm = Alarm.objects.filter(rule=RULE, subject=dependency.name, closed_at__isnull=True).first()
    move = decide_move(policy, observed, _ongoing_outage(alarm), now)
    if move == OutageMove.BEGIN and policy is not None:
        _open_alarm(dependency, policy, observed, now)
    elif move == OutageMove.ACT and policy is not None and alarm is not None:
        alarm.evidence |= {"acted": True}
        alarm.seen_at = now
        alarm.save(update_fields=["evidence", "seen_at"])
        actions.act_on_outage(dependency, policy, observed, alarm, now)
        alarm.save(update_fields=["evidence"])
    elif move in ENDING_MOVES and alarm is not None:
        alarm.closed_at = now
        alarm.save(update_fields=["closed_at"])
        actions.end_outage(dependency, alarm, move, now)
    else:
        return False
    return True


def _open_alarm(
    dependency: Dependency, policy: OutagePolicy, observed: ObservedBreakers, now: datetime
) -> None:
    counts = format_instances(observed.open, observed.fleet)
    Alarm.objects.create(
        rule=RULE,
        subject=dependency.name,
        severity="warning",
        value=observed.open / observed.fleet,
        limit=policy.open_share,
        evidence={"said": f"The breaker of {dependency.label} is open in {counts}", "acted": False},
        since=now,
        seen_at=now,
    )


def _outage_policy(dependency: Dependency) -> OutagePolicy | None:
    if dependency.removed_at is not None:
        return None
    return OutagePolicy.from_document(dependency.on_outage)


def _ongoing_outage(alarm: Alarm | None) -> OngoingOutage | None:
    if alarm is None:
        return None
    return OngoingOutage(alarm.since, alarm.seen_at, bool(alarm.evidence.get("acted")))
