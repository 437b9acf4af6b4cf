"""Audit rows and messages of new approval requests and of decisions on them."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from controlplane.core import authority
from controlplane.core.actions import Action
from controlplane.core.actors import Actor
from controlplane.core.approvals.kinds import get_resource, get_target
from controlplane.core.approvals.models import Approval
from controlplane.core.approvals.risk import Risk
from controlplane.core.audit import services as audit
from controlplane.core.canonical import timestamp
from controlplane.core.outbox import router
from controlplane.core.outbox import services as outbox
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.scopes import SCOPES

PAGE = "/approvals/"
FIRST_EVENTS = ("approval.requested", "review.opened")
SEVERITY = {Risk.LOW: "info", Risk.MEDIUM: "info", Risk.HIGH: "warning", Risk.CRITICAL: "critical"}
"""Severity of the messages about a request, by its risk."""


def get_subject(approval: Approval) -> str:
    is_review = approval.kind == Approval.Kind.BREAK_GLASS_REVIEW
    return f"{'review' if is_review else 'approval'}:{approval.pk}"


def message_fields(approval: Approval) -> dict[str, Any]:
    """Return the subject, scope, severity and resource for routing messages about a request.

    They don't change with the decision.
    """
    scope = approval.target.partition(":")[0]
    return {
        "subject": get_subject(approval),
        "scope": scope if scope in SCOPES else "",
        "severity": SEVERITY[Risk(approval.risk)],
        "resource": get_resource(approval),
    }


def record_decision(
    approval: Approval, state: str, comment: str, actor: Actor, now: datetime
) -> None:
    approval.state = state
    approval.comment = comment
    approval.decided_by = actor.label
    approval.decided_at = now
    approval.save(update_fields=["state", "comment", "decided_by", "decided_at"])


def announce_request(approval: Approval, actor: Actor, now: datetime) -> None:
    """Write the audit row and messages of a new approval request, last in the transaction."""
    after = {
        "approval": approval.pk,
        "kind": approval.kind,
        "risk": approval.risk,
        **({"replaces": approval.replaces_id} if approval.replaces_id else {}),
        **approval.diff,
    }
    event = "approval.requested"
    record_event(approval, event, after, message_facts(approval), approval.reason, actor, now)


def announce_decision(approval: Approval, actor: Actor, now: datetime, **more: Any) -> None:
    """Write the audit row and messages of a decision, last in the transaction.

    The messages remove the buttons to approve and deny from earlier ones. `more` is added to the
    values that fill the messages, and to the audit row.
    """
    is_review = approval.kind == Approval.Kind.BREAK_GLASS_REVIEW
    is_signature = is_review and approval.state == Approval.State.APPROVED
    action = "review.signed" if is_signature else f"approval.{approval.state}"
    after = {"approval": approval.pk, "kind": approval.kind, **more}
    facts = {
        **message_facts(approval),
        "decided_by": approval.decided_by,
        "comment": approval.comment,
        "outcome": get_outcome(approval),
        **more,
    }
    event = action if is_signature else "approval.decided"
    record_event(
        *(approval, event, after, facts, approval.comment, actor, now),
        action=action,
        notify_requester=True,
    )


def record_event(
    approval: Approval,
    event: str,
    after: Mapping[str, Any],
    facts: Mapping[str, Any],
    reason: str,
    actor: Actor,
    now: datetime,
    *,
    action: str = "",
    notify_requester: bool = False,
) -> None:
    """Write the audit row and the messages of an event in the life of an approval request.

    The action in the audit row is `action`, by default the event's name. The first message also
    goes to the person on call for the team that decides. Each later one reaches all destinations of
    the first, where it removes the buttons to approve and deny, even if routes, the owner or the
    person on call changed. With `notify_requester`, the requester's personal destinations get the
    message, too. Call this last in the transaction, because it holds the audit lock until the end.
    """
    entry = audit.record(
        actor=actor,
        action=action or event,
        target=get_target(approval),
        reason=reason,
        after=after,
        now=now,
    )
    first_key = f"{get_subject(approval)}:first"
    announce = partial(
        outbox.announce,
        event=event,
        event_key=first_key if event in FIRST_EVENTS else f"audit:{entry.pk}",
        facts=facts,
        now=now,
        **message_fields(approval),
    )
    announce()
    if event in FIRST_EVENTS:
        to = _find_people_on_call(approval, now)
    else:
        first = OutboxMessage.objects.filter(event_key=first_key)
        to = list(first.values_list("destination", flat=True))
    if notify_requester and approval.requester_id is not None:
        to += router.get().destinations_of_user(approval.requester_id, now)
    if to:
        announce(to=list(dict.fromkeys(to)))


def _find_people_on_call(approval: Approval, now: datetime) -> list[str]:
    """Return where to reach the person on call for the team that decides, but not the requester."""
    teams = authority.read_teams().deciders_of(Action.APPROVE, get_resource(approval))
    if not teams:
        return []
    return router.get().destinations_on_call(teams, now, but=approval.requester_id)


def get_outcome(approval: Approval) -> str:
    """Return the request's state, or `withdrawn` if the requester denied their own request."""
    requester = approval.requester.username if approval.requester else None
    if (
        approval.state == Approval.State.DENIED
        and approval.decided_by.partition(":")[2] == requester
    ):
        return "withdrawn"
    return str(approval.state)


def message_facts(approval: Approval) -> dict[str, Any]:
    """Return the values for a request's messages; `approval` is the id that their buttons send."""
    return {
        "id": approval.pk,
        "approval": approval.pk,
        "kind": approval.kind,
        "summary": approval.summary,
        "reason": approval.reason,
        "risk": approval.risk,
        "by": approval.requested_by,
        "lapses_at": timestamp(approval.expires_at) if approval.expires_at else None,
        "path": approval.page_url,
    }
