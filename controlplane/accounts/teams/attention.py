"""Attention items for teams that own something, or everything, and have no active member."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.urls import reverse

from controlplane.accounts.models.teams import Membership, Ownership, Team
from controlplane.core.actions import Action
from controlplane.core.page_registry import LINK, AttentionAction, AttentionItem, attention_rows

MAX_ITEMS = 100


def _find_without_members(_now: datetime) -> QuerySet[Team, Any]:
    """Return root teams, and teams with patterns, without an active member."""
    members = Membership.objects.filter(team=OuterRef("pk"), user__is_active=True)
    owned = Ownership.objects.filter(team=OuterRef("pk"))
    found = Team.objects.filter(Q(parent=None) | Exists(owned), ~Exists(members))
    return found.order_by("slug").values("slug", "name", "parent_id", "created_at")[:MAX_ITEMS]


@attention_rows(86, _find_without_members)
def list_without_members(_now: datetime, rows: Sequence[Mapping[str, Any]]) -> list[AttentionItem]:
    """Return an item for each team for which nobody can act."""
    return [_build_item(row) for row in rows]


def _build_item(row: Mapping[str, Any]) -> AttentionItem:
    path = reverse("team_page", args=[row["slug"]])
    detail = "Only members of teams above it may release and approve what it owns."
    if row["parent_id"] is None:
        detail = "Members of root teams release and approve everything (global:all)."
    action = AttentionAction(
        "Open the team", path, "switches:write", "team", LINK, authority=Action.EDIT
    )
    return AttentionItem(
        kind="team_members",
        severity="warning",
        title=f"{row['name']} has no active member",
        detail=f"{detail} Add members.",
        path=path,
        since=row["created_at"],
        actions=(action,),
        resource=f"team:{row['slug']}",
    )
