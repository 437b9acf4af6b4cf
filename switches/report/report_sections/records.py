"""The report section that says if the week, or a part of it, lies before the audit trail."""

from datetime import datetime

from controlplane.core.audit import services as audit
from controlplane.core.page_registry import REPORT_SECTIONS, IsOwned, ReportSection
from switches.report.compose import get_zone
from switches.report.renderer import format_time


@REPORT_SECTIONS.add(140)
def records_section(
    start: datetime, end: datetime, _now: datetime, _is_owned: IsOwned = None
) -> ReportSection | None:
    """Say when the audit trail begins; None if it is older than the week."""
    begins_at = audit.find_beginning()
    if begins_at is None or begins_at <= start:
        return None
    headline, unknown = "Recorded only in part", "the time before"
    if begins_at >= end:
        headline, unknown = "Not recorded", "this week"
    summary = f"The audit trail begins at {format_time(begins_at, get_zone())}"
    return ReportSection(
        "records",
        "Records",
        f"{summary}. Nothing is known of {unknown}.",
        "unknown",
        headline=headline,
    )
