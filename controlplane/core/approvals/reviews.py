"""Break-glass reviews: somebody overrode a safety rule, and a second person signs it.

A review is an approval that nobody can deny and that never expires. While it is unsigned it is
opened again every week: announced again, also to those who acknowledged its escalation.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from controlplane.core.actors import Actor, system
from controlplane.core.approvals import notes, services
from controlplane.core.approvals.models import Approval
from controlplane.core.approvals.risk import Risk
from controlplane.core.audit import services as audit
from controlplane.core.errors import NotFound
from controlplane.core.escalations import services as escalations
from controlplane.core.outbox import services as outbox
from controlplane.core.outbox.escalation import Escalation

REVIEW = Approval.Kind.BREAK_GLASS_REVIEW
REOPEN_INTERVAL = timedelta(days=7)
SEVERITY = "warning"
MAX_AT_ONCE = 200
SUMMARY_LENGTH = 300


def open_review(
    *,
    rule: str,
    reason: str,
    target: str,
    diff: Mapping[str, Any],
    actor: Actor,
    now: datetime,
) -> Approval:
    """Create the review of a broken glass, last in its transaction: it takes the audit lock.

    Each time the glass is broken has its own review, so `target` gets a number if an earlier one is
    still unsigned. The caller holds a lock that serializes this.
    """
    review = Approval.objects.create(
        kind=REVIEW,
        target=_find_free_target(target),
        summary=f"Glass broken: {target} against the rule “{rule}”"[:SUMMARY_LENGTH],
        diff={"rule": rule, **diff},
        reason=reason,
        risk=Risk.CRITICAL,
        requested_by=actor.label,
        requester_id=actor.user_id,
        requested_at=now,
        expires_at=None,
    )
    told = {**notes.message_facts(review), "rule": rule}
    _escalate(review, told, now)
    entry = audit.record(
        actor=actor,
        action="review.opened",
        target=target,
        reason=reason,
        after={"approval": review.pk, "kind": review.kind, **review.diff},
        now=now,
    )
    outbox.announce(
        event="review.opened",
        event_key=f"audit:{entry.pk}",
        facts=told,
        now=now,
        **notes.message_fields(review),
    )
    return review


def sign(*, review_id: int, comment: str, actor: Actor, now: datetime) -> Approval:
    """Sign a review, never by the person who broke the glass or the owner of their token.

    Raises :class:`NotFound`, :class:`Forbidden`, or :class:`Conflict` if somebody else signed it.
    """
    if not Approval.objects.filter(pk=review_id, kind=REVIEW).exists():
        raise NotFound(f"There is no review {review_id}.")
    return services.approve(approval_id=review_id, comment=comment, actor=actor, now=now)


def reopen_due(now: datetime) -> int:
    """Open reviews again that were unsigned for another week; return their number.

    Once for the last week boundary, however many went by.
    """
    unsigned = Approval.objects.filter(
        kind=REVIEW, state=Approval.State.PENDING, requested_at__lte=now - REOPEN_INTERVAL
    )
    due = unsigned.order_by("id").values_list("pk", flat=True)
    return sum(_reopen(pk, now) for pk in due[:MAX_AT_ONCE])


@transaction.atomic
def _reopen(review_id: int, now: datetime) -> bool:
    review = (
        Approval.objects.select_for_update()
        .filter(pk=review_id, state=Approval.State.PENDING)
        .first()
    )
    if review is None:
        return False
    subject = notes.get_subject(review)
    weeks = (now - review.requested_at) // REOPEN_INTERVAL
    told = {
        **notes.message_facts(review),
        "rule": review.diff.get("rule", ""),
        "weeks": weeks,
        "said": f"Unsigned for {weeks} week{'s' if weeks != 1 else ''}.",
    }
    if _opened_in_week(subject) >= weeks:
        return False
    escalations.close(subject=subject, now=now)
    _escalate(review, told, now)
    entry = audit.record(
        actor=system("reviews"),
        action="review.reopened",
        target=notes.get_target(review),
        reason=told["said"],
        after={"approval": review.pk, "weeks": weeks},
        now=now,
    )
    outbox.announce(
        event="review.reopened",
        event_key=f"audit:{entry.pk}",
        facts=told,
        now=now,
        **notes.message_fields(review),
    )
    return True


def _escalate(review: Approval, told: Mapping[str, Any], now: datetime) -> None:
    """Open the escalation, with the steps of a warning; routes are notified at once."""
    escalations.open_escalation(
        subject=notes.get_subject(review),
        event="review.waiting",
        severity=SEVERITY,
        scope=notes.message_fields(review)["scope"],
        facts=told,
        now=now,
        announced=True,
    )


def _opened_in_week(subject: str) -> int:
    """Return the week in which the open escalation began, from 0; -1 if there is none."""
    present = Escalation.objects.filter(subject=subject, closed_at=None).first()
    return -1 if present is None else int(present.facts.get("weeks", 0))


def _find_free_target(target: str) -> str:
    """Return a target without an unsigned review: `segment:finance`, else `segment:finance#2`."""
    taken = set(
        Approval.objects.filter(
            kind=REVIEW, state=Approval.State.PENDING, target__startswith=target
        ).values_list("target", flat=True)
    )
    number, name = 1, target
    while name in taken:
        number += 1
        name = f"{target}#{number}"
    return name


@services.carries_out(REVIEW, lock_first=lambda: None)
def _signed(review: Approval, _actor: Actor, now: datetime) -> None:
    escalations.close(subject=notes.get_subject(review), now=now)
