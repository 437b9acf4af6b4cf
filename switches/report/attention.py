"""Attention items: reports that are not signed off."""

from datetime import datetime

from django.db.models import QuerySet

from controlplane.core.page_registry import AttentionItem, attention_source
from switches.models import WeeklyReport

MAX_SHOWN = 50


def unsigned(_now: datetime) -> QuerySet[WeeklyReport]:
    return WeeklyReport.objects.filter(final=True, signed_at__isnull=True)


@attention_source(80, only_if=unsigned)
def unsigned_reports(now: datetime) -> list[AttentionItem]:
    """Return the final unsigned reports, the oldest first.

    One of a week that still runs can be signed, but nobody is asked to: the final one is another.
    """
    return [
        AttentionItem(
            kind="report",
            severity="warning",
            title=f"The weekly report {report.week} is not signed off",
            detail="Read it, see to what comes first in it, and sign.",
            path=f"/reports/weekly/{report.week}/",
            since=report.generated_at,
        )
        for report in unsigned(now).defer("content").order_by("week")[:MAX_SHOWN]
    ]
