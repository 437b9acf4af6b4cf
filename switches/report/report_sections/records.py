"""The report section that says if the week, or a part of it, lies before the audit trail."""

from datetime import datetime

from controlplane.core.audit.models import AuditEntry
from controlplane.core.page_registry import REPORT_SECTIONS, IsOwned, ReportRow, ReportSection


@REPORT_SECTIONS.add(140)
def records_section(
    start: datetime, end: datetime, _now: datetime, _is_owned: IsOwned = None
) -> ReportSection | None:
    """Say when the audit trail begins; None if it is older than the week."""
    begins_at = AuditEntry.objects.order_by("id").values_list("at", flat=True).first()
    if begins_at is None or begins_at <= start:
        return None
    if begins_at < end:
        headline = "Recorded only in part"
        summary = "The audit trail begins during the week. Nothing is known of the time before."
    else:
        headline = "Not recorded"
        summary = "The audit trail begins after the week. Nothing is known of the week."
    return ReportSection(
        "records",
        "Records",
        summary,
        "unknown",
        columns=("recorded_since",),
        rows=(ReportRow({"recorded_since": begins_at}, "/audit/"),),
        total=1,
        headline=headline,
    )
