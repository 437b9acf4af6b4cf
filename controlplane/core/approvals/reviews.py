"""Break-glass reviews: a second person signs each override of a safety rule.

A review is an approval request that can't be denied and never expires. An unsigned review is
reopened every week: it is announced again, and its escalation restarts.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import chain, count
from typing import Any

from django.db import transaction

from controlplane.core.actors import Actor, system_actor
from controlplane.core.approvals import announcements, kinds, services
from controlplane.core.approvals.models import Approval
from controlplane.core.approvals.risk import Risk
from controlplane.core.errors import NotFound
from controlplane.core.escalations import services as escalations
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
    summary: str = "",
    actor: Actor,
    now: datetime,
) -> Approval:
    """Create the review of a break-glass override; call this last in the transaction.

    `rule` is empty, and `summary` given, for a change that no rule refused but that was made
    without evaluating the rules. If an earlier review of `target` is still unsigned, the new
    review's target gets a suffix (`#2`). The calling function must hold a lock that prevents
    concurrent reviews of `target`.
    """
    review = Approval.objects.create(
        kind=REVIEW,
        target=_find_free_target(target),
        summary=(summary or f"Break-glass: {target} against the rule “{rule}”")[:SUMMARY_LENGTH],
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
    announcements.record_event(review, "review.opened", after, facts, reason, actor, now)
    return review


def sign(review_id: int, *, comment: str, actor: Actor, now: datetime) -> Approval:
    """Sign a review as a second person.

    Raises :class:`NotFound`, :class:`Forbidden` for the person who broke the glass and for tokens,
    and :class:`Conflict` if another person has signed already.
    """
    if not Approval.objects.filter(pk=review_id, kind=REVIEW).exists():
        raise NotFound(f"There is no review {review_id}.")
    return services.approve(review_id, comment=comment, actor=actor, now=now)


def reopen_due_reviews(now: datetime) -> int:
    """Announce again each review that is unsigned after another full week; return their number.

    Its escalation restarts. If several weeks have passed since the last run, this happens only
    once.
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
    escalation = Escalation.objects.filter(subject=subject, closed_at=None).first()
    if escalation is not None and escalation.facts.get("weeks", 0) >= weeks:
        return False
    facts = {
        **announcements.message_facts(review),
        "rule": review.diff.get("rule", ""),
        "weeks": weeks,
        "said": f"Unsigned for {weeks} week{'s' if weeks != 1 else ''}.",
    }
    escalations.close(subject=subject, now=now)
    _open_escalation(review, facts, now)
    after, actor = {"approval": review.pk, "weeks": weeks}, system_actor("reviews")
    announcements.record_event(review, "review.reopened", after, facts, facts["said"], actor, now)
    return True


def _open_escalation(review: Approval, facts: Mapping[str, Any], now: datetime) -> None:
    """Open the review's escalation. The review's own message goes to the routes."""
    escalations.open_escalation(
        subject=announcements.get_subject(review),
        event="review.waiting",
        severity=SEVERITY,
        scope=announcements.message_fields(review)["scope"],
        resource=kinds.get_resource(review),
        facts=facts,
        now=now,
        announced=True,
    )


def _find_free_target(target: str) -> str:
    """Return the target, or `target#2` and so on if it already has an unsigned review."""
    pending = Approval.objects.filter(kind=REVIEW, state="pending", target__startswith=target)
    taken = set(pending.values_list("target", flat=True))
    names = chain([target], (f"{target}#{number}" for number in count(2)))
    return next(name for name in names if name not in taken)


@services.on_approval(REVIEW)
def _close_escalation(review: Approval, _actor: Actor, now: datetime) -> None:
    escalations.close(subject=announcements.get_subject(review), now=now)
