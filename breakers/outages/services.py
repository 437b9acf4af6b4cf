"""Watching the dependencies that have a policy for outages, and acting once for each outage.

An outage is kept as an alarm of the rule `outage`, from the first look that finds it.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Q, QuerySet

from breakers import names, publication
from breakers.models import Alarm, BreakerState, Dependency
from breakers.states import unhealthy

from . import actions
from .decision import ENDS, Move, Outage, Policy, Seen, decide

RULE = "outage"
SEEN_EVERY = timedelta(seconds=30)
"""How often it is written that an outage still lasts."""

log = structlog.get_logger(__name__)


def pending() -> list[QuerySet[Any]]:
    """Return the pending work: open breakers and ongoing outages."""
    return [
        BreakerState.objects.filter(state="open"),
        Alarm.objects.filter(rule=RULE, closed_at__isnull=True),
    ]


def look(now: datetime) -> int:
    """Begin, act upon and end outages by what is reported now; returns how many that was.

    One that can't be dealt with is logged, and stands in nobody's way.
    """
    lasting = {one.subject: one for one in Alarm.objects.filter(rule=RULE, closed_at__isnull=True)}
    watched = _watched(lasting)
    seen = _seen([one.pk for one in watched], now)
    done = 0
    for one in watched:
        try:
            done += _move(one, seen.get(one.pk, Seen()), lasting.get(one.name), now)
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            log.exception("outage.failed", dependency=one.name)
    return done


def _watched(lasting: Mapping[str, Alarm]) -> list[Dependency]:
    """Those with a policy that have an open breaker, and those of which an outage lasts."""
    is_open = BreakerState.objects.filter(state="open").values("dependency")
    wanted = Q(removed_at__isnull=True, pk__in=is_open) & ~Q(on_outage={})
    for name in lasting:
        caller, _, callee = name.partition(names.ARROW)
        wanted |= Q(caller=caller, callee=callee)
    return list(Dependency.objects.filter(wanted).order_by("pk"))


def _seen(ids: Sequence[int], now: datetime) -> dict[int, Seen]:
    if not ids:
        return {}
    found = unhealthy.look(now, also=ids)
    return {
        pk: Seen(one.instances, one.open, one.half_open, one.blinded)
        for pk in ids
        if (one := found.get(pk))
    }


def _move(dependency: Dependency, seen: Seen, alarm: Alarm | None, now: datetime) -> bool:
    """Whether something was done. Most looks find nothing to do, and lock nothing."""
    move = decide(_policy(dependency), seen, _outage(alarm), now)
    if move == Move.NOTHING:
        return False
    if move == Move.SEE:
        return _see(alarm, now)
    with transaction.atomic():
        return _moved(dependency.pk, now)


def _moved(pk: int, now: datetime) -> bool:
    """Decide once more. With the registry's lock nobody else does meanwhile, and the policy and
    what is forced stay as they are."""
    publication.lock()
    dependency = Dependency.objects.get(pk=pk)
    seen = _seen([pk], now).get(pk, Seen())
    policy = _policy(dependency)
    alarm = Alarm.objects.filter(rule=RULE, subject=dependency.name, closed_at__isnull=True).first()
    move = decide(policy, seen, _outage(alarm), now)
    if move == Move.BEGIN and policy is not None:
        _begin(dependency, policy, seen, now)
    elif move == Move.ACT and policy is not None and alarm is not None:
        _act(dependency, policy, seen, alarm, now)
    elif move in ENDS and alarm is not None:
        alarm.closed_at = now
        alarm.save(update_fields=["closed_at"])
        actions.end(dependency, alarm, move, now)
    else:
        return False
    return True


def _begin(dependency: Dependency, policy: Policy, seen: Seen, now: datetime) -> None:
    said = f"The breaker of {dependency.name} is open in {seen.open:,} of {seen.fleet:,} instances"
    Alarm.objects.create(
        rule=RULE,
        subject=dependency.name,
        severity="warning",
        value=seen.open / seen.fleet,
        limit=policy.open_share,
        evidence={"said": said, "acted": False},
        since=now,
        seen_at=now,
    )


def _act(dependency: Dependency, policy: Policy, seen: Seen, alarm: Alarm, now: datetime) -> None:
    """The row is written first, and so locked before the audit trail is; what was done is added."""
    alarm.evidence |= {"acted": True}
    alarm.seen_at = now
    alarm.save(update_fields=["evidence", "seen_at"])
    actions.act(dependency, policy, seen, alarm, now)
    alarm.save(update_fields=["evidence"])


def _see(alarm: Alarm | None, now: datetime) -> bool:
    if alarm is not None and now - alarm.seen_at >= SEEN_EVERY:
        Alarm.objects.filter(pk=alarm.pk, closed_at__isnull=True).update(seen_at=now)
    return False


def _policy(dependency: Dependency) -> Policy | None:
    if dependency.removed_at is not None:
        return None
    return Policy.of(dependency.on_outage)


def _outage(alarm: Alarm | None) -> Outage | None:
    if alarm is None:
        return None
    return Outage(alarm.since, alarm.seen_at, bool(alarm.evidence.get("acted")))
