"""What drills have to say in the weekly report, and on the page of all that waits."""

from datetime import datetime

from django.db.models import Count, F, Min, Q, QuerySet

from controlplane.core.canonical import timestamp
from controlplane.core.page_registry import ReportRow, ReportSection, Waiting
from switches.models import Drill, Switch
from switches.report.counted_rows import first_rows
from switches.report.words import counted, first, page_of

from . import live, neglect

MAX_WAITING = 200


def not_rehearsed(_start: datetime, _end: datetime, now: datetime) -> ReportSection:
    """Switches that may not work when they are needed: those never rehearsed first."""
    found = neglect.unproven(now)
    rows, counts = first_rows(
        found.order_by(F("last_proven_at").asc(nulls_first=True), "pk"),
        never=Q(last_proven_at__isnull=True),
    )
    total, never = counts["total"], counts["never"]
    failed = {
        drill.switch_id: live.why_not(drill) for drill in neglect.failed().filter(switch__in=rows)
    }
    return ReportSection(
        slug="not_rehearsed",
        title="Never rehearsed or not for 90 days",
        summary=(
            f"{counted(total, 'switch')} not proven by a drill within 90 days, {never:,} of them "
            "never. Begin a drill, or let one come round."
            if total
            else "Every switch was proven by a drill within 90 days."
        ),
        tone="warn" if total else "good",
        columns=("switch", "owner", "last_proven_at", "last_drill_failed"),
        rows=tuple(
            ReportRow(
                {
                    "switch": switch.pk,
                    "owner": switch.owner,
                    "last_proven_at": (
                        timestamp(switch.last_proven_at) if switch.last_proven_at else None
                    ),
                    "last_drill_failed": first(failed.get(switch.pk, "")),
                },
                page_of(switch.pk),
            )
            for switch in rows
        ),
        total=total,
    )


def failures(_now: datetime) -> QuerySet[Drill]:
    return neglect.failed()


def never_proven(_now: datetime) -> QuerySet[Switch]:
    return neglect.never_proven()


def failed_drills(_now: datetime) -> list[Waiting]:
    """Each switch whose last drill has failed."""
    found = neglect.failed().select_related("job").order_by("pk")[:MAX_WAITING]
    return [
        Waiting(
            kind="drill",
            severity="warning",
            title=f"The drill of {drill.switch_id} failed",
            detail=f"{live.why_not(drill)} Mend that, and rehearse it again.",
            path=f"/drills/#drill-{drill.pk}",
            since=drill.job.finished_at or drill.job.created_at,
        )
        for drill in found
    ]


def never_rehearsed(now: datetime) -> list[Waiting]:
    """One for all the switches that were never proven."""
    found = neglect.never_proven().aggregate(count=Count("pk"), since=Min("registered_at"))
    count, since = found["count"], found["since"]
    if not count:
        return []
    return [
        Waiting(
            kind="rehearsal",
            severity="info",
            title=f"{counted(count, 'switch')} never rehearsed",
            detail="Nobody knows that they stop what they should. Rehearse each in a drill.",
            path="/drills/#unproven",
            since=since or now,
        )
    ]
