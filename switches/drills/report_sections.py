"""Weekly report section about drills."""

from datetime import datetime

from django.db.models import F, Q

from controlplane.core.canonical import timestamp
from controlplane.core.page_registry import REPORT_SECTIONS, ReportRow, ReportSection
from switches.report.section_rows import pluralize, read_first_rows, shorten_reason, switch_path

from . import queries


@REPORT_SECTIONS.add(65)
def not_rehearsed_section(_start: datetime, _end: datetime, now: datetime) -> ReportSection:
    found = queries.find_unproven(now)
    rows, counts = read_first_rows(
        found.order_by(F("last_proven_at").asc(nulls_first=True), "pk"),
        never=Q(last_proven_at__isnull=True),
    )
    total, never = counts["total"], counts["never"]
    failed = {
        drill.switch_id: drill.failure_reason
        for drill in queries.find_failed_drills().filter(switch__in=rows)
    }
    return ReportSection(
        slug="not_rehearsed",
        title="Never rehearsed or not for 90 days",
        summary=(
            f"{pluralize(total, 'switch')} not proven by a drill within 90 days, {never:,} of them "
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
                    "last_drill_failed": shorten_reason(failed.get(switch.pk, "")),
                },
                switch_path(switch.pk),
            )
            for switch in rows
        ),
        total=total,
    )
