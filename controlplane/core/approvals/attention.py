"""Attention items for pending approval requests and unsigned reviews."""

from collections.abc import Sequence
from datetime import datetime

from django.db.models import Q, QuerySet

from controlplane.core.actions import Action
from controlplane.core.approvals import kinds
from controlplane.core.approvals.announcements import PAGE, get_subject
from controlplane.core.approvals.models import Approval
from controlplane.core.approvals.reviews import REOPEN_INTERVAL, REVIEW
from controlplane.core.approvals.risk import Risk
from controlplane.core.page_registry import AttentionAction, AttentionItem, attention_rows
from controlplane.core.roles import Power

MAX_ITEMS = 300
SEVERITY = {Risk.LOW: "info", Risk.MEDIUM: "info", Risk.HIGH: "warning", Risk.CRITICAL: "warning"}


def _filter_open_reviews(_now: datetime) -> QuerySet[Approval]:
    reviews = Approval.objects.filter(kind=REVIEW, state=Approval.State.PENDING)
    return reviews.order_by("id")[:MAX_ITEMS]


def _filter_open_requests(now: datetime) -> QuerySet[Approval]:
    live = Q(expires_at__gt=now) | Q(expires_at__isnull=True)
    requests = Approval.objects.filter(live, state=Approval.State.PENDING).exclude(kind=REVIEW)
    return requests.order_by("expires_at", "id")[:MAX_ITEMS]


@attention_rows(15, _filter_open_reviews)
def list_unsigned_reviews(now: datetime, found: Sequence[Approval]) -> list[AttentionItem]:
    """Return attention items for unsigned reviews, oldest first; critical after a week."""
    return [
        AttentionItem(
            kind="review",
            severity="critical" if now - review.requested_at >= REOPEN_INTERVAL else "warning",
            title=f"Unsigned review: {review.summary}",
            detail=f"By {review.requested_by}: {review.reason}",
            path=review.page_url,
            since=review.requested_at,
            due_at=review.requested_at
            + REOPEN_INTERVAL * ((now - review.requested_at) // REOPEN_INTERVAL + 1),
            actions=(_build_action("Sign…", review),),
            subjects=(get_subject(review),),
            resource=kinds.get_resource(review),
        )
        for review in found
    ]


@attention_rows(25, _filter_open_requests)
def list_pending_requests(_now: datetime, found: Sequence[Approval]) -> list[AttentionItem]:
    """Return attention items for pending approval requests, those that expire first at the top."""
    return [
        AttentionItem(
            kind="approval",
            severity=SEVERITY[Risk(approval.risk)],
            title=f"Approval needed: {approval.summary}",
            detail=f"{approval.risk.capitalize()} risk, requested by {approval.requested_by}: "
            f"{approval.reason}",
            path=approval.page_url,
            since=approval.requested_at,
            due_at=approval.expires_at,
            actions=(_build_action("Approve or deny…", approval),),
            subjects=(get_subject(approval),),
            resource=kinds.get_resource(approval),
        )
        for approval in found
    ]


def _build_action(label: str, approval: Approval) -> AttentionAction:
    return AttentionAction(
        label,
        f"{PAGE}{approval.pk}/",
        Power.APPROVE,
        "approvals",
        except_user=approval.requester_id,
        needs_current=True,
        authority=Action.APPROVE,
    )
