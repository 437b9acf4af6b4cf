"""A letter from the archive, put back among the dead letters: declared, carried out, written down.

Like leaving, it is committed as an intent first, and the clockwork ends what somebody began.
"""

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from django.db import transaction
from django.db.models import F

from breakers.dead_letters.letters import ids, packing
from breakers.dead_letters.models import POSITION, Departure
from breakers.dead_letters.redis_servers.servers import ServerRefused, ServerUnavailable
from breakers.dead_letters.subjects import audit_target
from controlplane.core import authority, deadline
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, NotFound
from controlplane.core.live import change_notices

from . import archive, audit_rows, execution, settlement
from .execution import RemovalOutcome

MAX_RESTORED = 500
BUDGET_SECONDS = 2.0
RESTORED = "dead_letter.restored"
State = Departure.State

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class PreparedRestore:
    """What was put back and is yet to be written down; in a dry run nothing was (no outcome)."""

    departure: Departure
    actor: Actor
    outcome: RemovalOutcome | None = None


def restore(*, departure_id: int, reason: str, actor: Actor, now: datetime) -> dict[str, Any]:
    """Both parts, for callers without a transaction."""
    prepared = prepare_restore(departure_id=departure_id, reason=reason, actor=actor, now=now)
    with transaction.atomic():
        return record_restore(prepared, now=now)


def prepare_restore(
    *, departure_id: int, reason: str, actor: Actor, now: datetime, dry_run: bool = False
) -> PreparedRestore:
    """Add an archived letter to its stream again, as it was, under a new id.

    It has to have been dropped, or to have been gone when it was to leave. Safe to repeat. Raises
    :class:`Forbidden`, :class:`InvalidInput`, :class:`NotFound`, :class:`Conflict`, and
    :class:`servers.ServerUnavailable`, before which it may have been noted, to be carried out
    later.
    """
    actor.require(settlement.SCOPE)
    said = settlement.require_reason(reason)
    with transaction.atomic(durable=True):
        departure = archive.lock_departure(departure_id)
        _require_restorable(departure, now)
        if dry_run:
            return PreparedRestore(departure, actor)
        before = departure.state
        if departure.state != State.RESTORING:
            departure.state = State.RESTORING
            departure.restored_by, departure.restore_reason = actor.label[:200], said
            departure.restored_at = now
            departure.save(update_fields=["state", "restored_by", "restore_reason", "restored_at"])
        deadline.check()
        authority.require_still([actor])
    try:
        outcome = execution.execute_restore(departure)
    except ServerUnavailable as error:
        raise ServerUnavailable(
            f"The Redis server {departure.stream.server} does not answer. The restoring is noted,"
            " and is carried out once it answers; asking again does no harm."
        ) from error
    if outcome.kind == "refused":
        _revert(departure, before)
        raise ServerRefused(outcome.why, server=departure.stream.server)
    return PreparedRestore(departure, actor, outcome)


def record_restore(prepared: PreparedRestore, *, now: datetime) -> dict[str, Any]:
    """Write it down in the caller's transaction, audit row last; what to answer."""
    outcome = prepared.outcome
    if outcome is not None:
        _record(prepared.departure, outcome, now, actor=prepared.actor)
    new_id = outcome.new_id if outcome is not None else None
    return {"restored": True, "new_id": new_id, "departure": prepared.departure.pk}


def settle_overdue_restores(before: datetime, now: datetime) -> int:
    """End what was begun before that moment and left; returns how many that was."""
    overdue = Departure.objects.filter(state=State.RESTORING, restored_at__lt=before)
    deadline = time.monotonic() + BUDGET_SECONDS
    away: set[str] = set()
    done = 0
    rows = overdue.order_by("restored_at", "pk").values_list("pk", "stream__server")
    for pk, server in list(rows[:MAX_RESTORED]):
        if time.monotonic() > deadline:
            break
        if server in away:
            continue
        try:
            done += _finish(pk, now)
        except (ServerUnavailable, NotFound) as error:
            log.warning("dead_letters.settle_postponed", server=server, error=str(error))
            away.add(server)
    return done


def _finish(pk: int, now: datetime) -> bool:
    """Whether it came to an end; what is refused for the time being does not.

    Raises :class:`ServerUnavailable`, and :class:`NotFound` if no such server is configured any
    more.
    """
    departure = Departure.objects.select_related("stream").filter(pk=pk).first()
    if departure is None:
        return False
    if departure.restored_at is None or departure.restored_at <= now - execution.NOTED_FOR:
        return _withdraw(departure, "Whether it was put back is not known any more.", now)
    outcome = execution.execute_restore(departure)
    if outcome.kind == "refused":
        return not outcome.is_passing and _withdraw(departure, outcome.why, now)
    with transaction.atomic():
        return _record(departure, outcome, now)


def _require_restorable(departure: Departure, now: datetime) -> None:
    """Raise :class:`Conflict` if it is not to be restored, or can't be."""
    entry_id = ids.to_entry_id(departure.position)
    if departure.state == State.RESTORED:
        raise Conflict(f"The dead letter {entry_id} was restored already: as {departure.new_id}.")
    if departure.state == State.INTENDED:
        raise Conflict(f"The dead letter {entry_id} is about to leave; wait until it has.")
    if departure.state == State.DONE and departure.action == Departure.Action.RETRY:
        raise Conflict(
            f"The dead letter {entry_id} was retried: its message is in"
            f" {departure.stream.origin} as {departure.new_id}, and restoring would double it."
        )
    if departure.state == State.GONE and departure.action == Departure.Action.RETRY:
        _require_not_retried(departure)
    if archive.is_expired(departure, now):
        raise Conflict(f"Only what left within {archive.ARCHIVED_FOR.days} days can be restored.")
    fields = len(packing.unpack(departure.fields))
    if fields > settlement.MAX_FIELDS:
        raise Conflict(
            f"This letter has {fields:,} fields; up to {settlement.MAX_FIELDS:,} can be put back at"
            " once. Copy it from the archive.",
            why="too_many_fields",
        )


def _require_not_retried(departure: Departure) -> None:
    """One that was missing when somebody looked long after the intent may have been retried."""
    if departure.done_at is not None:
        if departure.done_at - departure.intended_at < execution.NOTED_FOR:
            return
        raise Conflict(
            f"Whether the dead letter {ids.to_entry_id(departure.position)} was retried nobody"
            " knows any more: its server was away for too long. Look for it in"
            f" {departure.stream.origin}, and copy it from the archive if it is not there."
        )


def _record(
    departure: Departure, outcome: RemovalOutcome, now: datetime, *, actor: Actor | None = None
) -> bool:
    """Whether it was still to be written down."""
    locked = archive.lock_departure(departure.pk)
    if locked.state != State.RESTORING:
        return False
    locked.state, locked.new_id = State.RESTORED, outcome.new_id[:POSITION]
    locked.save(update_fields=["state", "new_id"])
    stream = locked.stream
    type(stream).objects.filter(pk=stream.pk).update(depth=F("depth") + 1, gone_at=None)
    change_notices.changed("dlq", str(stream))
    is_theirs = actor is not None and actor.label == locked.restored_by
    audit.record(
        actor=audit_rows.without_role(actor)
        if actor and is_theirs
        else audit_rows.actor_from_label(locked.restored_by),
        action=RESTORED,
        target=audit_target(stream),
        reason=locked.restore_reason,
        before={"id": ids.to_entry_id(locked.position), "archive": locked.pk},
        after={"id": locked.new_id},
        now=now,
    )
    return True


def _withdraw(departure: Departure, why: str, now: datetime) -> bool:
    """As nobody waits for the answer, the trail has it."""
    with transaction.atomic():
        if not _revert(departure, State.RESTORING):
            return False
        audit.record(
            actor=audit_rows.SETTLE,
            action=audit_rows.WITHDRAWN,
            target=audit_target(departure.stream),
            reason="The letter could not be put back; it is in the archive still.",
            after={"archive": departure.pk, "action": "restore", "why": why},
            now=now,
        )
    return True


def _revert(departure: Departure, before: str) -> bool:
    """Nothing was put back: it is as it was `before`, whether it was still to be written down.

    Of what was begun by another, a letter that was to be retried had gone, and another counts as
    dropped.
    """
    if before == State.RESTORING:
        was_retry = departure.action == Departure.Action.RETRY
        before = State.GONE if was_retry else State.DONE
    log.warning("dead_letters.restore_refused", stream=str(departure.stream), id=departure.pk)
    mine = Departure.objects.filter(pk=departure.pk, state=State.RESTORING)
    back = {"restored_by": "", "restore_reason": "", "restored_at": None}
    return bool(mine.update(state=before, **back))
