"""Section of the weekly report about messages: sent, failed and slowest, by destination."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, F, Max, Q

from controlplane.core.durations import format_readable
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.page_registry import REPORT_SECTIONS, ReportRow, ReportSection
from controlplane.notify.targets import destination_names
from controlplane.notify.targets.destination_names import DestinationName

from . import selection

MAX_ROWS = 50


@REPORT_SECTIONS.add(200)
def deliveries_section(start: datetime, end: datetime, now: datetime) -> ReportSection:
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
    sent, failed, pending = (sum(row[it] for row in rows) for it in ("sent", "failed", "pending"))
    return ReportSection(
        slug="deliveries",
        title="Messages delivered",
        summary=_summarize(sent, failed, pending),
        tone="bad" if failed else "warn" if pending else "good",
        columns=("Destination", "Sent", "Failed", "Pending", "Slowest"),
        rows=tuple(_make_row(row, names[row["destination"]]) for row in rows[:MAX_ROWS]),
        total=len(rows),
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


def _summarize(sent: int, failed: int, pending: int) -> str:
    if not (sent or failed or pending):
        return "Nothing was to be told this week."
    failures = f"{failed:,} failed and wait for somebody to retry or discard them"
    rest = f"; {pending:,} still to be sent." if pending else "."
    return f"{sent:,} sent, {failures if failed else 'none failed'}{rest}"
