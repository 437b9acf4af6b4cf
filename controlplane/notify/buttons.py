"""Actions of buttons in Slack messages: approve, deny, sign, and acknowledge."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from controlplane.core.actors import Actor
from controlplane.core.approvals import announcements, reviews, services
from controlplane.core.errors import Conflict, NotFound
from controlplane.core.escalations import services as escalations
from controlplane.core.outbox.escalation import Escalation

from .interactions.actions import button

SUBJECT = re.compile(r"[!-~]{1,120}")
JUST_NOW = timedelta(minutes=5)
"""Time after an acknowledgement in which another press counts as a repeated click."""


@button("approve")
def approve_request(value: Mapping[str, Any], actor: Actor, now: datetime) -> str:
    """Approve the approval request that the button names; if it is a review, sign it."""
    pk = read_id(value, "approval")
    approval = services.approve(approval_id=pk, comment="", actor=actor, now=now)
    word = "You signed" if approval.kind == reviews.REVIEW else "You approved"
    return f"{word}: {approval.summary}"


@button("sign")
def sign_review(value: Mapping[str, Any], actor: Actor, now: datetime) -> str:
    pk = read_id(value, "approval")
    review = reviews.sign(review_id=pk, comment="", actor=actor, now=now)
    return f"You signed: {review.summary}"


@button("deny")
def deny_approval(value: Mapping[str, Any], actor: Actor, now: datetime) -> str:
    """Deny the approval request that the button names; if it is the actor's own, withdraw it."""
    pk = read_id(value, "approval")
    approval = services.deny(approval_id=pk, comment="", actor=actor, now=now)
    is_withdrawn = announcements.get_outcome(approval) == "withdrawn"
    return f"{'You have withdrawn' if is_withdrawn else 'You denied'}: {approval.summary}"


@button("acknowledge")
def acknowledge_escalation(value: Mapping[str, Any], actor: Actor, now: datetime) -> str:
    """Acknowledge the open escalation that the button names, by its id or its subject."""
    actor.require("switches:write")
    rows = Escalation.objects.filter(closed_at=None)
    if "escalation" in value:
        present = rows.filter(pk=read_id(value, "escalation")).first()
    else:
        subject = value.get("subject")
        if not isinstance(subject, str) or not SUBJECT.fullmatch(subject):
            raise NotFound("This button names no subject. Open the console instead.")
        present = rows.filter(subject=subject).first()
    if present is None:
        raise Conflict("This is over; there is nothing to acknowledge.")
    known_at = present.acknowledged_at
    if known_at is None or now - known_at > JUST_NOW:
        escalations.acknowledge_one(escalation_id=present.pk, actor=actor, now=now)
        return "You acknowledged it. Escalation is paused for 24 hours."
    return (
        f"{present.acknowledged_by} has already acknowledged it. Escalation is paused for 24 hours."
    )


def read_id(value: Mapping[str, Any], name: str) -> int:
    found = value.get(name)
    if not isinstance(found, int) or isinstance(found, bool) or not 0 < found < 2**63:
        raise NotFound(f"This button names no {name}. Open the console instead.")
    return found
