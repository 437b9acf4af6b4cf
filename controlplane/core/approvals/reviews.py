"""Break-glass reviews: a second person signs each override of a safety rule.

A review is an approval request that can't be denied and never expires. An unsigned review is
reopened every week: it is announced again, and its escalation restarts.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from controlplane.core.actors import Actor, system_actor
from controlplane.core.approvals import announcements, services
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
    *, rule: str, reason: str, target: str, diff: Mapping[str, Any], actor: Actor, now: datetime
) -> Approval:
    """Create the review of a break-glass override; call this last in the transaction.

    If an earlier review of `target` is still unsigned, the new review's target gets a suffix
    (`#2`). The calling function must hold a lock that prevents concurrent reviews of `target`.
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
    facts = {**announcements.message_facts(review), "rule": rule}
    _open_escalation(review, facts, now)
    after = {"approval": review.pk, "kind": review.kind, **review.diff}
    _announce("review.opened", target, review, facts, actor, now, reason, after)
    return review


def sign(*, review_id: int, comment: str, actor: Actor, now: datetime) -> Approval:
    """Sign a review as a second person.

    Raises :class:`NotFound`, :class:`Forbidden` for the person who broke the glass and for tokens,
    and :class:`Conflict` if another person has signed already.
    """
    if not Approval.objects.filter(pk=review_id, kind=REVIEW).exists():
        raise NotFound(f"There is no review {review_id}.")
    return services.approve(approval_id=review_id, comment=comment, actor=actor, now=now)


def reopen_due_reviews(now: datetime) -> int:
    """Reopen each review that has been unsigned for another full week; return their number.

    If several weeks have passed since the last run, the review is reopened only once.
    """
    unsigned = Approval.objects.filter(
        kind=REVIEW, state=Approval.State.PENDING, requested_at__lte=now - REOPEN_INTERVAL
    )
    due = unsigned.order_by("id").values_list("pk", flat=True)
    return sum(_reopen_review(pk, now) for pk in due[:MAX_AT_ONCE])


@transaction.atomic
def _reopen_review(review_id: int, now: datetime) -> bool:
    review = (
        Approval.objects.select_for_update()
        .filter(pk=review_id, state=Approval.State.PENDING)
        .first()
    )
    if review is None:
        return False
    subject = announcements.get_subject(review)
    weeks = (now - review.requested_at) // REOPEN_INTERVAL
    facts = {
        **announcements.message_facts(review),
        "rule": review.diff.get("rule", ""),
        "weeks": weeks,
        "said": f"Unsigned for {weeks} week{'s' if weeks != 1 else ''}.",
    }
    if _get_escalation_week(subject) >= weeks:
        return False
    escalations.close(subject=subject, now=now)
    _open_escalation(review, facts, now)
    after = {"approval": review.pk, "weeks": weeks}
    target, actor = announcements.get_target(review), system_actor("reviews")
    _announce("review.reopened", target, review, facts, actor, now, facts["said"], after)
    return True


def _open_escalation(review: Approval, facts: Mapping[str, Any], now: datetime) -> None:
    """Open the review's escalation without notifying the routes, which get the review's message."""
    escalations.open_escalation(
        subject=announcements.get_subject(review),
        event="review.waiting",
        severity=SEVERITY,
        scope=announcements.message_fields(review)["scope"],
        facts=facts,
        now=now,
        announced=True,
    )


def _announce(
    event: str,
    target: str,
    review: Approval,
    facts: Mapping[str, Any],
    actor: Actor,
    now: datetime,
    reason: str,
    after: Mapping[str, Any],
) -> None:
    """Write the audit row and the messages of an event of the review."""
    entry = audit.record(
        actor=actor, action=event, target=target, reason=reason, after=after, now=now
    )
    fields = announcements.message_fields(review)
    outbox.announce(event=event, event_key=f"audit:{entry.pk}", facts=facts, now=now, **fields)


def _get_escalation_week(subject: str) -> int:
    """Return the age in weeks at which a review was last escalated; -1 if it isn't escalated."""
    escalation = Escalation.objects.filter(subject=subject, closed_at=None).first()
    return -1 if escalation is None else int(escalation.facts.get("weeks", 0))


def _find_free_target(target: str) -> str:
    """Return the target, or `target#2` and so on if an unsigned review already has the name."""
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


@services.on_approval(REVIEW)
def _close_escalation(review: Approval, _actor: Actor, now: datetime) -> None:
    escalations.close(subject=announcements.get_subject(review), now=now)
