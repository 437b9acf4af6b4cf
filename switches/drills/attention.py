"""Drills that failed and switches without one, in *Needs attention*."""

from datetime import datetime

from django.db.models import Count, Min, QuerySet

from controlplane.core.page_registry import AttentionItem, attention_source
from switches.drills import live, neglect
from switches.models import Drill, Switch
from switches.report.words import counted

MAX_ITEMS = 200


def failures(_now: datetime) -> QuerySet[Drill]:
    return neglect.failed()


def never_proven(_now: datetime) -> QuerySet[Switch]:
    return neglect.never_proven()


@attention_source(45, only_if=failures)
def failed_drills(_now: datetime) -> list[AttentionItem]:
    """Each switch whose last drill has failed."""
    found = neglect.failed().select_related("job").order_by("pk")[:MAX_ITEMS]
    return [
        AttentionItem(
            kind="drill",
            severity="warning",
            title=f"The drill of {drill.switch_id} failed",
            detail=f"{live.why_not(drill)} Mend that, and rehearse it again.",
            path=f"/drills/#drill-{drill.pk}",
            since=drill.job.finished_at or drill.job.created_at,
        )
        for drill in found
    ]


@attention_source(90, only_if=never_proven)
def never_rehearsed(now: datetime) -> list[AttentionItem]:
    """One for all the switches that were never proven."""
    found = neglect.never_proven().aggregate(count=Count("pk"), since=Min("registered_at"))
    count, since = found["count"], found["since"]
    if not count:
        return []
    return [
        AttentionItem(
            kind="rehearsal",
            severity="info",
            title=f"{counted(count, 'switch')} never rehearsed",
            detail="Nobody knows that they stop what they should. Rehearse each in a drill.",
            path="/drills/#unproven",
            since=since or now,
        )
    ]
