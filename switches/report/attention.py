"""Items of the attention page about unsigned weekly reports."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Count, Min, QuerySet

from controlplane.core.authority import Teams, read_teams
from controlplane.core.page_registry import LINK, AttentionAction, AttentionItem, attention_rows
from controlplane.core.roles import Power
from switches.models import TeamReport, WeeklyReport

MAX_SHOWN = 50
MAX_TEAMS = 200


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


def find_unsigned_of_teams(_now: datetime) -> QuerySet[Any, Any]:
    """Return the teams with unsigned reports: number, and week and time of the oldest."""
    rows = TeamReport.objects.filter(final=True, signed_at__isnull=True).order_by()
    counted = rows.values("team").annotate(
        count=Count("pk"), week=Min("week"), since=Min("generated_at")
    )
    return counted.order_by("since", "team")[:MAX_TEAMS]


@attention_rows(81, find_unsigned_of_teams)
def list_unsigned_team_reports(
    _now: datetime, found: Sequence[Mapping[str, Any]]
) -> list[AttentionItem]:
    """Return an item for each team that has not signed reports, about the oldest of them."""
    teams = read_teams() if found else None
    return [
        AttentionItem(
            kind="team_report",
            severity="warning",
            title=f"The weekly report {row['week']} of {_name_team(teams, row['team'])} "
            "is not signed off",
            detail="Read it, act on its first items, and sign it off."
            + (f" {row['count'] - 1} later ones wait, too." if row["count"] > 2 else "")
            + (" A later one waits, too." if row["count"] == 2 else ""),
            path=f"/reports/weekly/{row['week']}/{row['team']}/",
            since=row["since"],
            actions=(
                AttentionAction(
                    "Read the report",
                    f"/reports/weekly/{row['week']}/{row['team']}/",
                    "reports:read",
                    "report",
                    LINK,
                ),
            ),
            subjects=(f"report:{row['week']}:{row['team']}",),
            resource=f"team:{row['team']}",
        )
        for row in found
    ]


def _name_team(teams: Teams | None, slug: str) -> str:
    team = teams.owner_of(f"team:{slug}") if teams else None
    return team.name if team else slug
