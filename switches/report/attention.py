"""Items of the attention page about unsigned weekly reports."""

from collections.abc import Sequence
from datetime import datetime

from django.db.models import QuerySet

from controlplane.core.page_registry import LINK, AttentionAction, AttentionItem, attention_rows
from controlplane.core.roles import Power
from switches.models import WeeklyReport

MAX_SHOWN = 50


def find_unsigned(_now: datetime) -> QuerySet[WeeklyReport]:
    rows = WeeklyReport.objects.filter(final=True, signed_at__isnull=True)
    return rows.only("week", "generated_at").order_by("week")[:MAX_SHOWN]


@attention_rows(80, find_unsigned)
def list_unsigned_reports(_now: datetime, found: Sequence[WeeklyReport]) -> list[AttentionItem]:
    """Return an item for each final unsigned report, the oldest first.

    Reports of the running week are left out because the final report replaces them.
    """
    return [
        AttentionItem(
            kind="report",
            severity="warning",
            title=f"The weekly report {report.week} is not signed off",
            detail="Read it, act on its first items, and sign it off.",
            path=f"/reports/weekly/{report.week}/",
            since=report.generated_at,
            actions=(
                AttentionAction(
                    "Read and sign off",
                    f"/reports/weekly/{report.week}/",
                    Power.APPROVE,
                    "report",
                    LINK,
                ),
            ),
            subjects=(f"report:{report.week}",),
        )
        for report in found
    ]
