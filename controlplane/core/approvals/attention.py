"""Attention items for pending approval requests and unsigned reviews."""

from datetime import datetime

from django.db.models import Q, QuerySet

from controlplane.core.approvals.announcements import PAGE
from controlplane.core.approvals.models import Approval
from controlplane.core.approvals.reviews import REOPEN_INTERVAL, REVIEW
from controlplane.core.approvals.risk import Risk
from controlplane.core.page_registry import AttentionItem, attention_source

MAX_ITEMS = 300
SEVERITY = {Risk.LOW: "info", Risk.MEDIUM: "info", Risk.HIGH: "warning", Risk.CRITICAL: "warning"}


def _filter_open_reviews(_now: datetime) -> QuerySet[Approval]:
    return Approval.objects.filter(kind=REVIEW, state=Approval.State.PENDING)


def _filter_open_requests(_now: datetime) -> QuerySet[Approval]:
    return Approval.objects.filter(state=Approval.State.PENDING).exclude(kind=REVIEW)


@attention_source(15, only_if=_filter_open_reviews)
def list_unsigned_reviews(now: datetime) -> list[AttentionItem]:
    """Return attention items for unsigned reviews, oldest first; critical after a week."""
    return [
        AttentionItem(
            kind="review",
            severity="critical" if now - review.requested_at >= REOPEN_INTERVAL else "warning",
            title=f"Unsigned review. {review.summary}",
            detail=f"By {review.requested_by}: {review.reason}",
            path=f"{PAGE}#approval-{review.pk}",
            since=review.requested_at,
            due_at=review.requested_at
            + REOPEN_INTERVAL * ((now - review.requested_at) // REOPEN_INTERVAL + 1),
        )
        for review in _filter_open_reviews(now).order_by("id")[:MAX_ITEMS]
    ]


@attention_source(25, only_if=_filter_open_requests)
def list_pending_requests(now: datetime) -> list[AttentionItem]:
    """Return attention items for pending approval requests, those that expire first at the top."""
    live = Q(expires_at__gt=now) | Q(expires_at__isnull=True)
    return [
        AttentionItem(
            kind="approval",
            severity=SEVERITY[Risk(approval.risk)],
            title=f"Approval wanted. {approval.summary}",
            detail=f"{approval.risk.capitalize()} risk, asked by {approval.requested_by}: "
            f"{approval.reason}",
            path=f"{PAGE}#approval-{approval.pk}",
            since=approval.requested_at,
            due_at=approval.expires_at,
        )
        for approval in _filter_open_requests(now)
        .filter(live)
        .order_by("expires_at", "id")[:MAX_ITEMS]
    ]
