"""Items of the attention page about failed drills and switches never proven by a drill."""

from datetime import datetime

from django.db.models import Count, Min

from controlplane.core.page_registry import AttentionItem, attention_source
from switches.drills import queries
from switches.report.section_rows import pluralize

MAX_ITEMS = 200


@attention_source(45, only_if=lambda _now: queries.find_failed_drills())
def list_failed_drills(_now: datetime) -> list[AttentionItem]:
    found = queries.find_failed_drills().select_related("job").order_by("pk")[:MAX_ITEMS]
    return [
        AttentionItem(
            kind="drill",
            severity="warning",
            title=f"Drill of {drill.switch_id} failed",
            detail=f"{drill.failure_reason} Fix this, then drill it again.",
            path=f"/drills/#drill-{drill.pk}",
            since=drill.job.finished_at or drill.job.created_at,
        )
        for drill in found
    ]


@attention_source(90, only_if=lambda _now: queries.find_never_proven())
def list_never_rehearsed(now: datetime) -> list[AttentionItem]:
    found = queries.find_never_proven().aggregate(count=Count("pk"), since=Min("registered_at"))
    count, since = found["count"], found["since"]
    if not count:
        return []
    return [
        AttentionItem(
            kind="rehearsal",
            severity="info",
            title=f"{pluralize(count, 'switch')} never tested",
            detail="Run a drill of each to prove that services obey it.",
            path="/drills/#unproven",
            since=since or now,
        )
    ]
