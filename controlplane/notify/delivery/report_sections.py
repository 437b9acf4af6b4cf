"""Section of the weekly report about messages: sent, failed and slowest, by destination."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, F, Max, Q

from controlplane.core.durations import format_readable
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.page_registry import REPORT_SECTIONS, IsOwned, ReportRow, ReportSection
from controlplane.notify.targets import destination_names
from controlplane.notify.targets.destination_names import DestinationName

from . import selection, statements
from .statements import DeliveryCounts

MAX_ROWS = 50


@REPORT_SECTIONS.add(200)
def deliveries_section(
    start: datetime, end: datetime, now: datetime, is_owned: IsOwned = None
) -> ReportSection | None:
    """Return the section about messages of the whole installation; None in a team's report."""
    if is_owned is not None:
        return None
    written = Q(created_at__gte=start, created_at__lt=end)
    still_failed = selection.GIVEN_UP & Q(created_at__lt=end)
    rows = list(
        OutboxMessage.objects.filter(written | still_failed)
        .values("destination")
        .annotate(
            sent=Count("pk", filter=Q(state="sent")),
            failed=Count("pk", filter=selection.GIVEN_UP),
            pending=Count("pk", filter=Q(state="pending")),
            slowest=Max(F("finished_at") - F("created_at"), filter=Q(state="sent")),
        )
        .order_by("-failed", "-sent", "destination")
    )
    names = destination_names.name_destinations(row["destination"] for row in rows)
    counts = DeliveryCounts(
        delivered=sum(row["sent"] for row in rows),
        waiting=sum(row["pending"] for row in rows),
        failed=sum(row["failed"] for row in rows),
    )
    statement = statements.describe_week(counts, end, now)
    return ReportSection(
        slug="deliveries",
        title="Messages delivered",
        summary=f"{statement.text}.",
        tone="warn" if statement.tone == "pending" else statement.tone,
        columns=("Destination", "Sent", "Failed", "Pending", "Slowest"),
        rows=tuple(_make_row(row, names[row["destination"]]) for row in rows[:MAX_ROWS]),
        total=len(rows),
        headline=statement.text,
    )


def _make_row(row: Mapping[str, Any], to: DestinationName) -> ReportRow:
    slowest = row["slowest"]
    where = {} if to.is_personal else {"destination": to.destination}
    narrowed = {**({"state": "failed"} if row["failed"] else {}), **where}
    return ReportRow(
        cells={
            "Destination": to.label,
            "Sent": row["sent"],
            "Failed": row["failed"],
            "Pending": row["pending"],
            "Slowest": format_readable(slowest) if slowest is not None else "",
        },
        path=f"/deliveries/?{urlencode(narrowed)}" if narrowed else "/deliveries/",
    )
