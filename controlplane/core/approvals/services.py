"""Services that create, edit, approve, deny and expire approval requests.

Other apps register the action of an approval with :func:`on_approval`.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import connection, transaction

from controlplane.core import authority, canonical
from controlplane.core.actions import Action
from controlplane.core.actors import Actor, system_actor
from controlplane.core.approvals import announcements, kinds
from controlplane.core.approvals.models import Approval
from controlplane.core.approvals.risk import LIFETIME, Risk, RiskFacts, classify_request
from controlplane.core.ended_sessions import retry_if_ended
from controlplane.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from controlplane.core.json_values import require_readable
from controlplane.core.roles import Power

MAX_REASON_LENGTH = 2000
MAX_AT_ONCE = 500
EXPIRED = "Not decided in time."
EDITED = "Edited: the new request must be reviewed again."

SYSTEM = system_actor("approvals")
State = Approval.State

log = structlog.get_logger(__name__)

on_approval = kinds.on_approval


def request_approval(
    *,
    kind: str,
    target: str,
    summary: str,
    diff: Mapping[str, Any],
    reason: str,
    risk: str = "",
    facts: RiskFacts | None = None,
    lifetime: timedelta | None = None,
    actor: Actor,
    now: datetime,
) -> Approval:
    """Create an approval request in the caller's transaction, and return it.

    If an equal request is pending, that one is returned. If a different one for the target is
    pending, it is voided if it is by the same requester; otherwise :class:`Conflict` is raised.

    `diff` maps a field to `[before, after]`, or to one value that is only shown. The risk is that
    of the kind, or higher by `facts` or `risk`. `lifetime` is by default that of the risk.
    """
    present = Approval.objects.select_for_update().filter(
        kind=kind, target=target, state=State.PENDING
    )
    waiting = present.first()
    if waiting is not None and not _has_expired(waiting, now):
        same = canonical.dumps(waiting.diff) == canonical.dumps(diff)
        mine = _is_requester(waiting, actor)
        if same and (waiting.reason == reason or not mine):
            return waiting
        if not mine:
            raise Conflict(
                f"{waiting.requested_by} requested another change of {target} that is still pending"
                f" (approval {waiting.pk}). It must be decided or withdrawn first.",
                approval=waiting.pk,
            )
    if waiting is not None:
        is_expired = _has_expired(waiting, now)
        by = SYSTEM if is_expired else actor
        state, why = (State.EXPIRED, EXPIRED) if is_expired else (State.VOID, EDITED)
        announcements.record_decision(waiting, state, why, by, now)
        announcements.announce_decision(waiting, by, now)
    risk_class = classify_request(kind, facts, risk)
    return _create_request(
        Approval(
            kind=kind,
            target=target,
            summary=summary,
            diff=dict(diff),
            reason=reason,
            risk=risk_class,
            expires_at=now + (lifetime or LIFETIME[risk_class]),
            replaces=waiting if waiting is not None and waiting.state == "void" else None,
        ),
        actor,
        now,
    )


def get_approval(approval_id: int) -> Approval:
    approval = Approval.objects.filter(pk=approval_id).first()
    if approval is None:
        raise NotFound(f"There is no approval {approval_id}.")
    return approval


def requires_confirmation(approval: Approval) -> bool:
    """Return True if people must confirm their identity before they approve this request."""
    return kinds.get_kind(approval.kind).requires_confirmation(approval)


def approve(approval_id: int, *, comment: str, actor: Actor, now: datetime) -> Approval:
    """Approve a request and carry it out, in one transaction.

    A repeated call changes nothing. Raises :class:`Forbidden` for the requester and for tokens, and
    :class:`Conflict` with the actual outcome if the request is no longer pending.
    """
    return _decide(approval_id, State.APPROVED, comment, actor, now)


def deny(approval_id: int, *, comment: str, actor: Actor, now: datetime) -> Approval:
    """Deny a request as an approver, or withdraw it as its requester.

    Raises :class:`Conflict` for a review, which stays open until it is signed.
    """
    return _decide(approval_id, State.DENIED, comment, actor, now)


def edit_request(*, approval_id: int, reason: str, actor: Actor, now: datetime) -> Approval:
    """Void a pending request and create one with another reason; return the new request.

    Only the requester, or the owner of the requesting token, may do this. The lifetime restarts if
    the kind allows that. If the reason is the same, the old request is returned. Raises
    :class:`Conflict` if the request was decided.
    """
    reason = reason.strip()
    if not reason or len(reason) > MAX_REASON_LENGTH:
        raise InvalidInput(
            {"reason": [f"Enter a reason of at most {MAX_REASON_LENGTH} characters."]}
        )
    with transaction.atomic():
        old = _lock_request(approval_id)
        if not _is_requester(old, actor):
            raise Forbidden("Only the requester can edit a request. Deny it with a reason instead.")
        authority.require_in_limits(actor, kinds.get_resource(old))
        if old.kind == Approval.Kind.BREAK_GLASS_REVIEW:
            raise Conflict("The reason of a break-glass can't be edited.")
        _require_pending(old, now)
        if old.reason == reason:
            return old
        kind = kinds.get_kind(old.kind)
        if problems := kind.check_reason(reason):
            raise InvalidInput({"reason": list(problems)})
        announcements.record_decision(old, State.VOID, EDITED, actor, now)
        lifetime = LIFETIME[Risk(old.risk)]
        if old.expires_at is not None:
            lifetime = old.expires_at - old.requested_at
        new = _create_request(
            Approval(
                kind=old.kind,
                target=old.target,
                summary=old.summary,
                diff=old.diff,
                reason=reason,
                risk=old.risk,
                expires_at=now + lifetime if kind.restarts_lifetime else old.expires_at,
                replaces=old,
            ),
            actor,
            now,
        )
        announcements.announce_decision(old, actor, now, replaced_by=new.pk)
        return new


def void_requests(*, kind: str, target: str, actor: Actor, now: datetime, why: str) -> None:
    """Void the pending requests of one kind for a target, in the caller's transaction."""
    pending = Approval.objects.select_for_update().filter(target=target, state="pending", kind=kind)
    for approval in pending:
        _end_request(approval, State.VOID, why, actor, now)


def expire_due_requests(now: datetime) -> int:
    """Expire requests that were not decided in time; return their number."""
    due = Approval.objects.filter(state="pending", expires_at__lte=now).order_by("id")
    return sum(_expire_request(pk, now) for pk in due.values_list("pk", flat=True)[:MAX_AT_ONCE])


def _expire_request(approval_id: int, now: datetime) -> bool:
    try:
        with transaction.atomic():
            waiting = _lock_request(approval_id)
            if waiting.state != State.PENDING:
                return False
            expire_request(waiting, now)
            return True
    except Exception:
        if not connection.is_usable():
            raise
        log.exception("approvals.expiry_failed", approval=approval_id)
        return False


def expire_request(approval: Approval, now: datetime) -> None:
    _end_request(approval, State.EXPIRED, EXPIRED, SYSTEM, now)


def _end_request(approval: Approval, state: str, why: str, actor: Actor, now: datetime) -> None:
    announcements.record_decision(approval, state, why, actor, now)
    kinds.get_kind(approval.kind).on_end(approval, actor, now)
    announcements.announce_decision(approval, actor, now)


def _create_request(approval: Approval, actor: Actor, now: datetime) -> Approval:
    approval.requested_by, approval.requester_id = actor.label, actor.user_id
    approval.requested_at = now
    approval.save(force_insert=True)
    announcements.announce_request(approval, actor, now)
    return approval


@retry_if_ended
def _decide(approval_id: int, verdict: str, comment: str, actor: Actor, now: datetime) -> Approval:
    require_readable(comment=comment)
    with transaction.atomic():
        approval = _lock_request(approval_id)
        _require_permission(approval, verdict, actor)
        if approval.state == verdict and _has_decided(approval, actor):
            return approval
        _require_pending(approval, now)
        announcements.record_decision(approval, verdict, comment, actor, now)
        if verdict == State.APPROVED:
            carry_out = kinds.get_kind(approval.kind).carry_out
            if carry_out is None:
                raise Conflict(
                    f"This installation can't carry out requests of the kind {approval.kind}."
                )
            carry_out(approval, actor, now)
        else:
            kinds.get_kind(approval.kind).on_end(approval, actor, now)
        announcements.announce_decision(approval, actor, now)
        return approval


def _lock_request(approval_id: int) -> Approval:
    """Lock the row of a request, after the rows that its kind must lock first; return it."""
    kinds.get_kind(get_approval(approval_id).kind).lock_first()
    return Approval.objects.select_for_update().get(pk=approval_id)


def _require_permission(approval: Approval, verdict: str, actor: Actor) -> None:
    review = approval.kind == Approval.Kind.BREAK_GLASS_REVIEW
    own = actor.user_id is not None and actor.user_id == approval.requester_id
    withdrawing = verdict == State.DENIED and own and actor.is_person and not review
    if not withdrawing:
        _require_approver(approval, actor)
    if own and verdict == State.APPROVED:
        raise Forbidden(
            "You used break-glass; a second person must sign this."
            if review
            else "You requested this; a second person must approve it."
        )
    if review and verdict == State.DENIED:
        raise Conflict("A review can't be denied. It stays open until someone else signs it.")


def _require_approver(approval: Approval, actor: Actor) -> None:
    resource = kinds.get_resource(approval)
    decision = authority.decide(actor, Action.APPROVE, resource)
    if decision.is_allowed and actor.is_person:
        return
    if not actor.is_person or decision.least_role is not None:
        actor.require_power(Power.APPROVE)  # Says that the role is too low, or tokens can't.
    raise authority.build_refusal(decision, Action.APPROVE, resource)


def _require_pending(approval: Approval, now: datetime) -> None:
    """Raise :class:`Conflict` with the actual outcome unless the request is pending."""
    if approval.state == State.VOID:
        newest = approval
        while following := Approval.objects.filter(replaces=newest).first():
            newest = following
        if newest is not approval:
            raise Conflict(
                f"The request was edited. Review it again: {newest.summary} (approval"
                f" {newest.pk}).",
                state=approval.state,
                replaced_by=newest.pk,
            )
    if approval.state != State.PENDING:
        by = f" by {approval.decided_by}" if approval.decided_by else ""
        raise Conflict(f"This was already {approval.state}{by}.", state=approval.state)
    if _has_expired(approval, now):
        raise Conflict("This request has expired. Request it again.", state="expired")


def _has_expired(approval: Approval, now: datetime) -> bool:
    return approval.expires_at is not None and approval.expires_at <= now


def _is_requester(approval: Approval, actor: Actor) -> bool:
    """Return True if the actor made the request; a request by the system is matched by label."""
    if approval.requester_id is None:
        return approval.requested_by == actor.label
    return approval.requester_id == actor.user_id


def _has_decided(approval: Approval, actor: Actor) -> bool:
    """Return True if this person decided the request, in the console or in Slack."""
    return actor.is_person and approval.decided_by.partition(":")[2] == actor.name
