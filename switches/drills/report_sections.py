"""Weekly report section about drills."""

from datetime import datetime

from django.db.models import F, Q

from controlplane.core.page_registry import REPORT_SECTIONS, IsOwned, ReportSection
from controlplane.core.team_filter import keep_owned
from switches.episodes import live_drills
from switches.report.section_rows import (
    build_section,
    pluralize,
    read_first_rows,
    shorten_reason,
    switch_path,
)

from . import queries


@REPORT_SECTIONS.add(65)
def not_rehearsed_section(
    _start: datetime, _end: datetime, now: datetime, is_owned: IsOwned = None
) -> ReportSection:
    found = keep_owned(queries.find_unproven(now), "pk", is_owned)
    rows, counts = read_first_rows(
        found.order_by(F("last_proven_at").asc(nulls_first=True), "pk"),
        never=Q(last_proven_at__isnull=True),
    )
    total, never = counts["total"], counts["never"]
    failed = {
        drill.switch_id: drill.failure_reason
        for drill in queries.find_failed_drills().filter(switch__in=rows, mode=live_drills.LIVE)
    }
    return build_section(
        "not_rehearsed",
        "No passed drill in the last 90 days",
        rows,
        lambda switch: switch_path(switch.pk),
        total=total,
        tone="warn" if total else "good",
        headline=f"{pluralize(total, 'switch')} without a passed drill in 90 days",
        summary=f"{pluralize(total, 'switch')} without a passed drill in the last 90 days; "
        f"{never:,} never passed one. Start a drill, or schedule one.",
        empty="No switches are due for a drill.",
        switch="pk",
        owner="owner",
        last_proven_at="last_proven_at",
        last_drill_failed=lambda switch: shorten_reason(failed.get(switch.pk, "")),
    )
