"""What a drill goes through: engaged, released, ended. Each is part of its caller's transaction.

Rows are locked in one order: publication, switch, drill, job. The audit rows come last.
"""

from datetime import datetime
from typing import Any, NamedTuple

from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.clock import db_now
from controlplane.core.jobs.models import Job
from controlplane.core.outbox import services as outbox
from switches import publication
from switches.drills import live, reach
from switches.models import Drill, Publication, Switch


class Locked(NamedTuple):
    """All that a drill changes, but for its job."""

    head: Publication
    switch: Switch
    drill: Drill


def lock(drill_id: int) -> Locked:
    """Lock what the drill may publish with."""
    head = publication.lock()
    switch_id = Drill.objects.values_list("switch_id", flat=True).get(pk=drill_id)
    switch = Switch.objects.select_for_update().get(pk=switch_id)
    return Locked(head, switch, lock_row(drill_id))


def lock_row(drill_id: int) -> Drill:
    """The drill alone, for what is not published."""
    return Drill.objects.select_for_update().get(pk=drill_id)


def engage(locked: Locked, now: datetime) -> None:
    """From the next version on, marked instances are told that the switch is engaged.

    Only those are measured: whoever is marked later may have got this version without the drill.
    """
    drill = locked.drill
    drill.engaged_version = publication.advance(locked.head, now)
    # Not the transaction's `now`: whoever waited for the lock was asked long before this moment.
    drill.engaged_at = max(now, db_now())
    drill.ends_by = drill.engaged_at + live.LASTS
    drill.measured = {**drill.measured, live.MARKED: sorted(reach.patterns())}
    drill.save(update_fields=["engaged_version", "engaged_at", "ends_by", "measured"])


def release(locked: Locked, now: datetime) -> bool:
    """From the next version on, everybody is told the same again; False if it was so already."""
    drill = locked.drill
    if drill.engaged_at is None or drill.released_at is not None:
        return False
    drill.released_version = publication.advance(locked.head, now)
    drill.released_at = max(now, db_now())
    drill.save(update_fields=["released_version", "released_at"])
    return True


def let_go(pattern: str) -> None:
    """Who is marked no more is told otherwise again, and proves nothing by the drills in force.

    The publication row is locked.
    """
    for drill in live.in_force().select_for_update().order_by("pk"):
        stopped = [one for one in drill.measured.get(live.MARKED, ()) if one != pattern]
        drill.measured = {**drill.measured, live.MARKED: stopped}
        drill.save(update_fields=["measured"])


def measure(drill: Drill, part: str, found: dict[str, Any], why: str = "") -> None:
    """Keep what was found of a part of the drill, and the first reason why it can't pass."""
    drill.measured = {**drill.measured, part: found}
    if why:
        drill.measured = {live.WHY: why, **drill.measured}
    drill.save(update_fields=["measured"])


def end(
    switch: Switch, drill: Drill, job: Job, *, passed: bool, actor: Actor, now: datetime
) -> None:
    """It is over: the switch is proven, or it is told why it is not. Writes the audit row."""
    drill.live, drill.passed = False, passed
    drill.save(update_fields=["live", "passed"])
    proves = passed and drill.mode == live.LIVE
    if proves:
        switch.last_proven_at = now
        switch.save(update_fields=["last_proven_at"])
    action = "drill.passed" if passed else "drill.failed"
    note(action, switch, drill, actor, now, reason=live.why_not(drill), **outcome(drill))
    if drill.mode != live.LIVE:
        return
    outbox.announce(
        event=action,
        event_key=f"drill:{drill.pk}:{action}",
        scope=switch.scope,
        severity="info" if passed else "warning",
        subject=subject(drill.pk),
        facts=facts(switch, reason=job.reason, by=job.created_by, said=said(drill), drill=drill.pk),
        now=now,
    )


def note(
    action: str,
    switch: Switch,
    drill: Drill,
    actor: Actor,
    now: datetime,
    *,
    reason: str = "",
    **after: Any,
) -> None:
    """Write an audit row about a drill; one that published carries the version."""
    audit.record(
        actor=actor,
        action=action,
        target=switch.pk,
        reason=reason,
        after={"drill": drill.pk, "mode": drill.mode, **after},
        now=now,
    )


def outcome(drill: Drill) -> dict[str, Any]:
    """What was measured, as far as it came."""
    apart = (live.WHY, live.MARKED)
    return {part: found for part, found in drill.measured.items() if part not in apart}


def said(drill: Drill) -> str:
    """What came of it, in a sentence."""
    if why := live.why_not(drill):
        return why
    found = drill.measured.get("look" if drill.mode == live.DRY else "engage", {})
    count = found.get("instances", 0)
    if drill.mode == live.DRY:
        return f"It would reach {_instances(count)}."
    back = drill.measured.get("release", {})
    return (
        f"{_instances(count)} stopped{_within(found)}, and let traffic flow again{_within(back)}."
    )


def subject(drill_id: int) -> str:
    """What messages about one drill share."""
    return f"drill:{drill_id}"


def facts(switch: Switch, **more: Any) -> dict[str, Any]:
    """What messages about drills of a switch say."""
    return {
        "switch": switch.pk,
        "scope": switch.scope,
        "key": switch.key,
        "path": "/drills/",
        **more,
    }


def _instances(count: int) -> str:
    return f"{count:,} instance{'' if count == 1 else 's'}"


def _within(found: dict[str, Any]) -> str:
    p99_ms = found.get("p99_ms")
    return "" if p99_ms is None else f" within {p99_ms:,} ms"
