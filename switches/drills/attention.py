"""Items of the attention page about failed drills and switches never proven by a drill."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Count, Min, QuerySet, Value

from controlplane.core.page_registry import LINK, AttentionAction, AttentionItem, attention_rows
from switches.drills import queries
from switches.models import Drill
from switches.report.section_rows import pluralize

MAX_ITEMS = 200


def _find_failed(_now: datetime) -> QuerySet[Drill]:
    return queries.find_failed_drills().select_related("job").order_by("pk")[:MAX_ITEMS]


def _count_never_proven(_now: datetime) -> QuerySet[Any, Any]:
    rows = queries.find_never_proven().order_by().values(one=Value(1))
    counted = rows.annotate(count=Count("pk"), since=Min("registered_at"))
    return counted.filter(count__gt=0)


@attention_rows(45, _find_failed)
def list_failed_drills(_now: datetime, found: Sequence[Drill]) -> list[AttentionItem]:
    return [
        AttentionItem(
            kind="drill",
            severity="warning",
            title=f"Drill of {drill.switch_id} failed",
            detail=f"{drill.failure_reason} Fix this, then drill it again.",
            path=f"/drills/#drill-{drill.pk}",
            since=drill.job.finished_at or drill.job.created_at,
            actions=(_open_drills(f"/drills/#drill-{drill.pk}"),),
            resource=drill.switch_id,
        )
        for drill in found
    ]


@attention_rows(90, _count_never_proven)
def list_never_rehearsed(now: datetime, found: Sequence[Mapping[str, Any]]) -> list[AttentionItem]:
    return [
        AttentionItem(
            kind="rehearsal",
            severity="info",
            title=f"{pluralize(row['count'], 'switch')} never passed a drill",
            detail="Run a drill of each to prove that services obey it.",
            path="/drills/#unproven",
            since=row["since"] or now,
            actions=(_open_drills("/drills/#unproven"),),
        )
        for row in found
    ]


def _open_drills(path: str) -> AttentionAction:
    return AttentionAction("Open drills", path, "switches:write", "drill", LINK)
