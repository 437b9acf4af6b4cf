"""Restore of letters from the archive, prepared and recorded as in :mod:`.actions`."""

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from django.db import transaction
from django.db.models import F

from breakers.dead_letters.models import POSITION, Departure
from breakers.dead_letters.redis_servers.servers import ServerUnavailable
from controlplane.core import authority, deadline
from controlplane.core.actions import Action
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
    """A restore that was executed in Redis and has to be recorded; a dry run has no outcome."""

    departure: Departure
    actor: Actor
    outcome: RemovalOutcome | None = None

    def record(self, now: datetime) -> dict[str, Any]:
        """Record the restore, write the audit row, and return the response."""
        if self.outcome is not None:
            _record(self.departure, self.outcome, now, actor=self.actor)
        new_id = self.outcome.new_id if self.outcome is not None else None
        return {"restored": True, "new_id": new_id, "departure": self.departure.pk}


def restore_letter(
    *, departure_id: int, reason: str, actor: Actor, now: datetime
) -> dict[str, Any]:
    """Restore an archived letter; return the response. Must run outside of a transaction."""
    prepared = prepare_restore(departure_id=departure_id, reason=reason, actor=actor, now=now)
    with transaction.atomic():
        return prepared.record(now)


def prepare_restore(
    *, departure_id: int, reason: str, actor: Actor, now: datetime, dry_run: bool = False
) -> PreparedRestore:
    """Add an archived letter to its stream again, under a new id. Safe to repeat.

    Raises :class:`Forbidden`, :class:`InvalidInput`, :class:`NotFound`, :class:`Conflict` if the
    letter can't be restored, :class:`ServerRefused`, and :class:`ServerUnavailable`, after which a
    declared restore is executed later.
    """
    actor.require(settlement.SCOPE)
    reason = settlement.require_reason(reason)
    with transaction.atomic(durable=True):
        departure = archive.lock_departure(departure_id)
        authority.require(actor, Action.REPLAY, departure.stream.resource)
        _require_restorable(departure, now)
        if dry_run:
            return PreparedRestore(departure, actor)
        before = departure.state
        if departure.state != State.RESTORING:
            departure.state = State.RESTORING
            departure.restored_by, departure.restore_reason = actor.label[:200], reason
            departure.restored_at = now
            departure.save(update_fields=["state", "restored_by", "restore_reason", "restored_at"])
        deadline.check()
        authority.require_still([actor])
    outcome = execution.execute_or_withdraw(
        departure.stream.server,
        lambda: execution.execute_restore(departure),
        lambda _refused: _revert_restore(departure, before),
        noted="The restore",
    )
    return PreparedRestore(departure, actor, outcome)


def settle_overdue_restores(before: datetime, now: datetime) -> int:
    """Execute and settle restores that began before `before`; return how many."""
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
            done += _finish_restore(pk, now)
        except (ServerUnavailable, NotFound) as error:
            log.warning("dead_letters.settle_postponed", server=server, error=str(error))
            away.add(server)
    return done


def _finish_restore(pk: int, now: datetime) -> bool:
    """Execute and settle a restore; return False if it stays open after a temporary refusal.

    Raises :class:`ServerUnavailable`, and :class:`NotFound` if its server is not configured.
    """
    departure = Departure.objects.select_related("stream").filter(pk=pk).first()
    if departure is None:
        return False
    if departure.restored_at is None or departure.restored_at <= now - execution.NOTED_FOR:
        return _withdraw_restore(departure, "It is unknown whether it was restored.", now)
    outcome = execution.execute_restore(departure)
    if outcome.kind == "refused":
        return not outcome.is_temporary and _withdraw_restore(departure, outcome.why, now)
    with transaction.atomic():
        return _record(departure, outcome, now)


def _require_restorable(departure: Departure, now: datetime) -> None:
    """Raise :class:`Conflict` if the letter can't be restored, for example after a retry."""
    entry_id = departure.entry_id
    if departure.state == State.RESTORED:
        raise Conflict(f"The dead letter {entry_id} was already restored, as {departure.new_id}.")
    if departure.state == State.INTENDED:
        raise Conflict(f"The dead letter {entry_id} is being removed. Try again afterwards.")
    if departure.state == State.DONE and departure.action == Departure.Action.RETRY:
        raise Conflict(
            f"The dead letter {entry_id} was retried: its message is in"
            f" {departure.stream.origin} as {departure.new_id}, so restoring would duplicate it."
        )
    if departure.state == State.GONE and departure.action == Departure.Action.RETRY:
        # Notes that would prove a retry are deleted after `NOTED_FOR`.
        missed_at = departure.done_at
        if missed_at and missed_at - departure.intended_at >= execution.NOTED_FOR:
            raise Conflict(
                f"It is unknown whether the dead letter {entry_id} was retried: its server was"
                f" unavailable for too long. Check {departure.stream.origin}; if the message is"
                " missing, copy it from the archive."
            )
    if departure.done_at and departure.done_at <= now - archive.ARCHIVED_FOR:
        raise Conflict(
            f"Letters can be restored for {archive.ARCHIVED_FOR.days} days after their removal."
        )
    fields = len(departure.entry.pairs)
    if fields > settlement.MAX_FIELDS:
        raise Conflict(
            f"This letter has {fields:,} fields; at most {settlement.MAX_FIELDS:,} can be restored."
            " Copy it from the archive.",
            why="too_many_fields",
        )


def _record(
    departure: Departure, outcome: RemovalOutcome, now: datetime, *, actor: Actor | None = None
) -> bool:
    """Record that a letter was restored, and audit it; return False if it was recorded before."""
    locked = archive.lock_departure(departure.pk)
    if locked.state != State.RESTORING:
        return False
    locked.state, locked.new_id = State.RESTORED, outcome.new_id[:POSITION]
    locked.save(update_fields=["state", "new_id"])
    stream = locked.stream
    type(stream).objects.filter(pk=stream.pk).update(depth=F("depth") + 1, gone_at=None)
    change_notices.notify_changed("dlq", str(stream))
    audit.record(
        actor=audit_rows.actor_by_label(actor, locked.restored_by),
        action=RESTORED,
        target=stream.audit_target,
        reason=locked.restore_reason,
        before={"id": locked.entry_id, "archive": locked.pk},
        after={"id": locked.new_id},
        now=now,
    )
    return True


def _withdraw_restore(departure: Departure, why: str, now: datetime) -> bool:
    with transaction.atomic():
        if not _revert_restore(departure, State.RESTORING):
            return False
        audit.record(
            actor=audit_rows.SETTLE,
            action=audit_rows.WITHDRAWN,
            target=departure.stream.audit_target,
            reason="The letter could not be restored. It is still in the archive.",
            after={"archive": departure.pk, "action": "restore", "why": why},
            now=now,
        )
    return True


def _revert_restore(departure: Departure, before: str) -> bool:
    """Undo a failed restore in the database: set the removal back to the state `before`.

    If another process began the restore, `before` is RESTORING; then a retry is set to GONE, and
    any other removal to DONE. Return False if the restore was settled already.
    """
    if before == State.RESTORING:
        was_retry = departure.action == Departure.Action.RETRY
        before = State.GONE if was_retry else State.DONE
    log.warning("dead_letters.restore_refused", stream=str(departure.stream), id=departure.pk)
    mine = Departure.objects.filter(pk=departure.pk, state=State.RESTORING)
    back = {"restored_by": "", "restore_reason": "", "restored_at": None}
    return bool(mine.update(state=before, **back))
