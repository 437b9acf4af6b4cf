"""Watching the dependencies that have a policy for outages, and acting once for each outage.

An outage is kept as an alarm of the rule `outage`, from the first look that finds it.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from django.db import connection, transaction

from breakers import publication, turns
from breakers.models import Alarm, Dependency
from breakers.outages import acting
from breakers.outages.decide import FALLBACK, Move, Outage, Policy, Seen, decide
from controlplane.core.instances.queries import HEARD_WITHIN

RULE = "outage"
SEEN_EVERY = timedelta(seconds=30)
"""How often it is written that an outage still lasts."""
MOST = 1000

_SEEN = """
    SELECT s.dependency_id,
           count(*) FILTER (WHERE s.mode IN ('normal', 'metrics_only')),
           count(*) FILTER (WHERE s.mode IN ('normal', 'metrics_only') AND s.state = 'open'),
           count(*) FILTER (WHERE s.mode IN ('normal', 'metrics_only') AND s.state = 'half_open'),
           count(*) FILTER (WHERE s.mode NOT IN ('normal', 'metrics_only'))
    FROM breakers_breakerstate s
    JOIN core_instance i ON i.id = s.instance AND i.boot = s.boot
    WHERE s.dependency_id = ANY(%(ids)s) AND i.reported_at >= %(fresh)s
    GROUP BY s.dependency_id
"""


def look(now: datetime) -> int:
    """Begin, act upon and end outages by what is reported now; returns how many that was."""
    lasting = {one.subject: one for one in _lasting()}
    watched = _watched(lasting)
    seen = _seen([one.pk for one in watched], now)
    return sum(_move(one, seen.get(one.pk, Seen()), lasting.get(one.name), now) for one in watched)


def _lasting() -> list[Alarm]:
    return list(Alarm.objects.filter(rule=RULE, closed_at__isnull=True)[:MOST])


def _watched(lasting: Mapping[str, Alarm]) -> list[Dependency]:
    """Those with a policy, and those of which an outage lasts."""
    with_policy = Dependency.objects.registered().exclude(on_outage={})
    found = {one.name: one for one in with_policy.order_by("pk")[:MOST]}
    for name in lasting.keys() - found.keys():
        caller, _, callee = name.partition("->")
        found |= {one.name: one for one in Dependency.objects.named(caller, callee)}
    return [*found.values()]


def _seen(ids: Sequence[int], now: datetime) -> dict[int, Seen]:
    if not ids:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_SEEN, {"ids": [*ids], "fresh": now - HEARD_WITHIN})
        return {pk: Seen(*counts) for pk, *counts in cursor}


def _move(dependency: Dependency, seen: Seen, alarm: Alarm | None, now: datetime) -> bool:
    """Whether something was done. Most looks find nothing to do, and lock nothing."""
    move = decide(_policy(dependency), seen, _outage(alarm), now)
    if move == Move.NOTHING:
        return False
    if move == Move.SEE:
        return _see(alarm, now)
    with transaction.atomic():
        return _moved(dependency, seen, now)


def _moved(dependency: Dependency, seen: Seen, now: datetime) -> bool:
    """Decide once more, alone. What forces breakers open takes the registry's lock first."""
    policy = _policy(dependency)
    if policy is not None and policy.action == FALLBACK:
        publication.lock()
    if not turns.alone("outages"):
        return False
    alarm = Alarm.objects.filter(rule=RULE, subject=dependency.name, closed_at__isnull=True).first()
    move = decide(policy, seen, _outage(alarm), now)
    if move == Move.BEGIN and policy is not None:
        _begin(dependency, policy, seen, now)
    elif move == Move.ACT and policy is not None and alarm is not None:
        alarm.evidence |= {"acted": True}
        alarm.seen_at = now
        acting.act(dependency, policy, seen, alarm, now)
        alarm.save(update_fields=["evidence", "seen_at"])
    elif move == Move.END and alarm is not None:
        alarm.closed_at = now
        alarm.save(update_fields=["closed_at"])
        acting.end(dependency, alarm, now)
    else:
        return False
    return True


def _begin(dependency: Dependency, policy: Policy, seen: Seen, now: datetime) -> None:
    said = f"The breaker of {dependency.name} is open in {seen.open} of {seen.instances} instances"
    Alarm.objects.create(
        rule=RULE,
        subject=dependency.name,
        severity="warning",
        value=seen.open / seen.instances,
        limit=policy.open_share,
        evidence={"said": said, "acted": False},
        since=now,
        seen_at=now,
    )


def _see(alarm: Alarm | None, now: datetime) -> bool:
    if alarm is not None and now - alarm.seen_at >= SEEN_EVERY:
        Alarm.objects.filter(pk=alarm.pk, closed_at__isnull=True).update(seen_at=now)
    return False


def _policy(dependency: Dependency) -> Policy | None:
    if dependency.removed_at is not None:
        return None
    return Policy.of(dependency.on_outage, dependency.callee)


def _outage(alarm: Alarm | None) -> Outage | None:
    if alarm is None:
        return None
    return Outage(alarm.since, alarm.seen_at, bool(alarm.evidence.get("acted")))
