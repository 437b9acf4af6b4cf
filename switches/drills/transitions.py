"""State changes of a drill: engaged, released, ended; each runs in the caller's transaction.

Rows are locked in the order publication, switch, drill, job; audit rows are written last.
"""

from datetime import datetime
from typing import Any, NamedTuple

from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.clock import db_now
from controlplane.core.jobs.models import Job
from controlplane.core.outbox import services as outbox
from switches import publication
from switches.episodes import live_drills
from switches.models import Drill, Publication, Switch
from switches.models.drill import MARKED, WHY

from . import marked_instances

HOW_TO_ORDER = (
    "Within 15 minutes, engage it with your emergency code on the page /emergency/ of any data"
    " plane. It is really engaged: release it afterwards."
)


class LockedDrill(NamedTuple):
    """A drill, its switch and the :class:`Publication` row (`head`), all locked for a change."""

    head: Publication
    switch: Switch
    drill: Drill


def lock_drill(drill_id: int) -> LockedDrill:
    head = publication.lock()
    switch_id = Drill.objects.values_list("switch_id", flat=True).get(pk=drill_id)
    switch = Switch.objects.select_for_update().get(pk=switch_id)
    return LockedDrill(head, switch, lock_drill_row(drill_id))


def lock_drill_row(drill_id: int) -> Drill:
    """Lock and return only the drill's row, for changes that publish nothing."""
    return Drill.objects.select_for_update().get(pk=drill_id)


def engage(locked: LockedDrill, now: datetime) -> None:
    """Publish the switch as engaged for the marked instances.

    The drill measures only the instances that are marked now: one that is marked later may have
    received this version of the snapshot without the drill.
    """
    drill = locked.drill
    drill.engaged_version = publication.advance(locked.head, now)
    # Not the transaction's `now`, which is long past if it waited for the lock.
    drill.engaged_at = max(now, db_now())
    drill.ends_by = drill.engaged_at + live_drills.MAX_DURATION
    drill.measured = {**drill.measured, MARKED: sorted(marked_instances.list_patterns())}
    drill.save(update_fields=["engaged_version", "engaged_at", "ends_by", "measured"])


def release(locked: LockedDrill, now: datetime) -> bool:
    """Publish the switch's real state to all instances again.

    Return False if the drill was not engaged, or is released already.
    """
    drill = locked.drill
    if drill.engaged_at is None or drill.released_at is not None:
        return False
    drill.released_version = publication.advance(locked.head, now)
    drill.released_at = max(now, db_now())
    drill.save(update_fields=["released_version", "released_at"])
    return True


def audit_release(locked: LockedDrill, actor: Actor, now: datetime) -> None:
    version = locked.drill.released_version
    record_audit("drill.released", locked.switch, locked.drill, actor, now, version=version)


def forget_mark(pattern: str) -> None:
    """Remove a mark from drills in progress, so that they no longer measure its instances.

    The caller has locked the :class:`Publication` row.
    """
    for drill in live_drills.find_drills_in_force().select_for_update().order_by("pk"):
        stopped = [mark for mark in drill.measured.get(MARKED, ()) if mark != pattern]
        drill.measured = {**drill.measured, MARKED: stopped}
        drill.save(update_fields=["measured"])


def record_measurement(drill: Drill, part: str, found: dict[str, Any], why: str = "") -> None:
    """Store a step's measurement; `why` becomes the drill's failure reason unless it has one."""
    drill.measured = {**drill.measured, part: found}
    if why:
        drill.measured = {WHY: why, **drill.measured}
    drill.save(update_fields=["measured"])


def end_drill(locked: LockedDrill, job: Job, *, passed: bool, actor: Actor, now: datetime) -> None:
    """End the drill, mark the switch as proven if it passed, and write audit row and message."""
    switch, drill = locked.switch, locked.drill
    drill.live, drill.passed = False, passed
    drill.save(update_fields=["live", "passed"])
    proves = passed and drill.mode == live_drills.LIVE
    if proves:
        switch.last_proven_at = now
        switch.save(update_fields=["last_proven_at"])
    action = "drill.passed" if passed else "drill.failed"
    reason = drill.failure_reason
    record_audit(action, switch, drill, actor, now, reason=reason, **drill.measurements)
    if drill.mode == live_drills.DRY:
        return
    outbox.announce(
        event=action,
        event_key=f"drill:{drill.pk}:{action}",
        scope=switch.scope,
        severity="info" if passed else "warning",
        subject=f"drill:{drill.pk}",
        resource=switch.pk,
        facts=message_facts(
            switch,
            reason=job.reason,
            by=job.created_by,
            said=describe_outcome(drill),
            drill=drill.pk,
        ),
        now=now,
    )


def request_order(switch: Switch, drill: Drill, reason: str, actor: Actor, now: datetime) -> None:
    """Ask people for the emergency order that an emergency drill waits for."""
    outbox.announce(
        event="drill.order_requested",
        event_key=f"drill:{drill.pk}:order",
        scope=switch.scope,
        subject=f"drill:{drill.pk}",
        resource=switch.pk,
        facts=message_facts(
            switch, reason=reason, by=actor.label, said=HOW_TO_ORDER, drill=drill.pk
        ),
        now=now,
    )


def record_audit(
    action: str,
    switch: Switch,
    drill: Drill,
    actor: Actor,
    now: datetime,
    *,
    reason: str = "",
    **after: Any,
) -> None:
    """Write an audit row about a drill, to which the keyword arguments `after` are added."""
    audit.record(
        actor=actor,
        action=action,
        target=switch.pk,
        reason=reason,
        after={"drill": drill.pk, "mode": drill.mode, **after},
        now=now,
    )


def describe_outcome(drill: Drill) -> str:
    if why := drill.failure_reason:
        return why
    if drill.mode == live_drills.EMERGENCY:
        order = drill.measured["order"]
        return (
            f"{order['by']} ordered it on the data plane {order['plane']}, and it was an ordinary"
            f" engagement {order['milliseconds']:,} ms later. Release the switch and sign its"
            " review."
        )
    measurement = drill.measured.get("look" if drill.mode == live_drills.DRY else "engage", {})
    count = measurement.get("instances", 0)
    if drill.mode == live_drills.DRY:
        return f"A live drill would block {_format_instances(count)}."
    back = drill.measured.get("release", {})
    return (
        f"{_format_instances(count)} blocked traffic{_format_delay(measurement)}, "
        f"and let it flow again{_format_delay(back)}."
    )


def message_facts(switch: Switch, **more: Any) -> dict[str, Any]:
    """Return the template values of a message about drills of a switch, plus `more`."""
    return {
        "switch": switch.pk,
        "scope": switch.scope,
        "key": switch.key,
        "path": "/drills/",
        **more,
    }


def _format_instances(count: int) -> str:
    return f"{count:,} instance{'' if count == 1 else 's'}"


def _format_delay(measurement: dict[str, Any]) -> str:
    p99_ms = measurement.get("p99_ms")
    return "" if p99_ms is None else f" within {p99_ms:,} ms"
