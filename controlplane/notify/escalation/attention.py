"""Attention items for unacknowledged escalations that no other item on the list covers."""

from datetime import datetime

from django.db.models import QuerySet

from controlplane.core.escalations import summaries
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.page_registry import AttentionItem, attention_source

from . import forecast

# Subjects with an attention source of their own, which gives more details.
TOLD_ELSEWHERE = (
    *("episode:", "approval:", "review:", "report:", "trip:", "job:", "alert:"),
    "outbox:backlog",
)
MAX_ITEMS = 300


def _open_escalations(_now: datetime) -> QuerySet[Escalation]:
    return Escalation.objects.filter(closed_at=None, acknowledged_at=None)


@attention_source(20, only_if=_open_escalations)
def list_unacknowledged(now: datetime) -> list[AttentionItem]:
    rows = _open_escalations(now)
    for prefix in TOLD_ELSEWHERE:
        rows = rows.exclude(subject__startswith=prefix)
    found = list(rows.order_by("opened_at", "id")[:MAX_ITEMS])
    nexts = forecast.next_notices(found, now)
    return [
        AttentionItem(
            kind="escalation",
            severity=one.severity,
            title=summaries.format_title(one),
            detail=f"Told so far: {summaries.format_notified(one)}.",
            path=one.facts.get("path") or summaries.ANY_PAGE,
            since=one.opened_at,
            due_at=nexts[one.pk].at if nexts[one.pk].is_heard else None,
        )
        for one in found
    ]
