"""Attention items for unacknowledged escalations that no other item on the list covers."""

from collections.abc import Sequence
from datetime import datetime

from django.db.models import QuerySet

from controlplane.core.escalations import summaries
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.page_registry import (
    POST,
    AttentionAction,
    AttentionItem,
    attention_rows,
)

# Subjects with an attention source of their own, which gives more details.
TOLD_ELSEWHERE = (
    *("episode:", "approval:", "review:", "report:", "trip:", "job:", "alert:"),
    "outbox:backlog",
)
MAX_ITEMS = 300


def _find_unacknowledged(_now: datetime) -> QuerySet[Escalation]:
    rows = Escalation.objects.filter(closed_at=None, acknowledged_at=None)
    for prefix in TOLD_ELSEWHERE:
        rows = rows.exclude(subject__startswith=prefix)
    return rows.order_by("opened_at", "id")[:MAX_ITEMS]


@attention_rows(20, _find_unacknowledged)
def list_unacknowledged(_now: datetime, found: Sequence[Escalation]) -> list[AttentionItem]:
    return [
        AttentionItem(
            kind="escalation",
            severity=one.severity,
            title=summaries.format_title(one),
            detail=summaries.format_details(one),
            path=one.facts.get("path") or summaries.ANY_PAGE,
            since=one.opened_at,
            actions=(_acknowledge(one),),
            subjects=(one.subject,),
            resource=one.resource,
        )
        for one in found
    ]


def _acknowledge(one: Escalation) -> AttentionAction:
    path = f"/escalations/{one.pk}/acknowledge/"
    return AttentionAction("Acknowledge", path, "switches:write", "eye", POST)
