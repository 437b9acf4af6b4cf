"""Items of the attention page about unsigned weekly reports."""

from datetime import datetime

from django.db.models import QuerySet

from controlplane.core.page_registry import AttentionItem, attention_source
from switches.models import WeeklyReport

MAX_SHOWN = 50


def find_unsigned(_now: datetime) -> QuerySet[WeeklyReport]:
    return WeeklyReport.objects.filter(final=True, signed_at__isnull=True)


@attention_source(80, only_if=find_unsigned)
def list_unsigned_reports(now: datetime) -> list[AttentionItem]:
    """Return an item for each final unsigned report, the oldest first.

    Reports of the running week are left out because the final report replaces them.
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
        for report in find_unsigned(now).defer("content").order_by("week")[:MAX_SHOWN]
    ]
