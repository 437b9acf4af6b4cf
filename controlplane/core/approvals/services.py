"""Asking for a second person, and that person's decision.

Apps register what happens on approval with :func:`carries_out`; core never imports them.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from controlplane.core.actors import Actor, system
from controlplane.core.approvals.models import Approval
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, Forbidden, NotFound
from controlplane.core.outbox import services as outbox
from controlplane.core.people.roles import Power

LIFETIME = timedelta(hours=24)

CarryOut = Callable[[Approval, Actor, datetime], None]
_carry_out: dict[str, CarryOut] = {}
_lock_first: dict[str, Callable[[], object]] = {}


def carries_out(kind: str, *, lock_first: Callable[[], object]) -> Callable[[CarryOut], CarryOut]:
    """Register the function that does what an approval of this kind allows.

    `lock_first` takes the lock that comes before the approval's own in the lock order.
    """

    def register(function: CarryOut) -> CarryOut:
        _carry_out[kind] = function
        _lock_first[kind] = lock_first
        return function

    return register


def request(
    *,
    kind: str,
    target: str,
    summary: str,
    diff: Mapping[str, Any],
    reason: str,
    risk: str,
    actor: Actor,
    now: datetime,
) -> Approval:
    """Write the request in the caller's transaction; the one already waiting is returned as is."""
    present = Approval.objects.filter(kind=kind, target=target, state="pending").first()
    if present is not None and not _has_expired(present, now):
        return present
    if present is not None:
        _decided(present, "expired", "Nobody decided in time.", system("approvals"), now)
        _note(present, system("approvals"), now)
    approval = Approval.objects.create(
        kind=kind,
        target=target,
        summary=summary,
        diff=dict(diff),
        reason=reason,
        risk=risk,
        requested_by=actor.label,
        requester_id=actor.user_id,
        requested_at=now,
        expires_at=now + LIFETIME,
    )
    entry = audit.record(
        actor=actor,
        action="approval.requested",
        target=target,
        reason=reason,
        after={"approval": approval.pk, "kind": kind, **diff},
        now=now,
    )
    outbox.announce(
        event="approval.requested",
        event_key=f"audit:{entry.pk}",
        subject=f"approval:{approval.pk}",
        facts={
            "id": approval.pk,
            "summary": summary,
            "reason": reason,
            "by": actor.label,
            "path": "/approvals/",
        },
        now=now,
    )
    return approval


def approve(*, approval_id: int, comment: str, actor: Actor, now: datetime) -> Approval:
    """Approve and carry out, in one transaction. Never by who asked, never by a token."""
    return _decide(approval_id, "approved", comment, actor, now)


def deny(*, approval_id: int, comment: str, actor: Actor, now: datetime) -> Approval:
    """Deny: nothing else happens. The same people may deny as may approve, and the requester."""
    return _decide(approval_id, "denied", comment, actor, now)


def void(*, kind: str, target: str, actor: Actor, now: datetime, why: str) -> None:
    """What was asked for no longer stands: pending requests about it end, in this transaction."""
    pending = Approval.objects.select_for_update().filter(target=target, state="pending", kind=kind)
    for approval in pending:
        _decided(approval, "void", why, actor, now)
        _note(approval, actor, now)


def expire_due(now: datetime) -> int:
    """Close the requests nobody decided in time; returns how many."""
    closed = 0
    actor = system("approvals")
    due = Approval.objects.filter(state="pending", expires_at__lte=now).values_list("pk", "kind")
    for pk, kind in due[:500]:
        with transaction.atomic():
            _lock_first[kind]()
            waiting = Approval.objects.select_for_update().filter(pk=pk, state="pending").first()
            if waiting is None:
                continue
            _decided(waiting, "expired", "Nobody decided in time.", actor, now)
            _note(waiting, actor, now)
            closed += 1
    return closed


def _decide(approval_id: int, verdict: str, comment: str, actor: Actor, now: datetime) -> Approval:
    kind = Approval.objects.filter(pk=approval_id).values_list("kind", flat=True).first()
    if kind is None:
        raise NotFound(f"There is no approval {approval_id}.")
    with transaction.atomic():
        _lock_first[kind]()
        approval = Approval.objects.select_for_update().get(pk=approval_id)
        _check(approval, verdict, actor, now)
        _decided(approval, verdict, comment, actor, now)
        if verdict == "approved":
            _carry_out[kind](approval, actor, now)
        _note(approval, actor, now)
        return approval


def _check(approval: Approval, verdict: str, actor: Actor, now: datetime) -> None:
    own = actor.user_id is not None and actor.user_id == approval.requester_id
    withdrawing = verdict == "denied" and own and actor.is_person
    if not withdrawing:
        actor.require_power(Power.APPROVE)
    if own and verdict == "approved":
        raise Forbidden("You asked for this; a second person has to approve it.")
    if approval.state != Approval.State.PENDING:
        raise Conflict(
            f"This was already {approval.state}"
            + (f" by {approval.decided_by}." if approval.decided_by else "."),
            state=approval.state,
        )
    if _has_expired(approval, now):
        raise Conflict("This request has expired; it has to be asked for again.", state="expired")


def _has_expired(approval: Approval, now: datetime) -> bool:
    return approval.expires_at is not None and approval.expires_at <= now


def _decided(approval: Approval, state: str, comment: str, actor: Actor, now: datetime) -> None:
    approval.state = state
    approval.comment = comment
    approval.decided_by = actor.label
    approval.decided_at = now
    approval.save(update_fields=["state", "comment", "decided_by", "decided_at"])


def _note(approval: Approval, actor: Actor, now: datetime) -> None:
    audit.record(
        actor=actor,
        action=f"approval.{approval.state}",
        target=approval.target,
        reason=approval.comment,
        after={"approval": approval.pk, "kind": approval.kind},
        now=now,
    )
