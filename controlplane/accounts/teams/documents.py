"""Documents of teams, as recorded in the audit trail: all that says who may do what."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from controlplane.accounts.models.teams import Membership, Ownership, Team
from controlplane.core import wakeups
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit

FIELDS = ("name", "description", "runbook_url", "member_group", "lead_group")
Document = dict[str, Any]


def read_documents(teams: QuerySet[Team]) -> dict[str, Document]:
    """Return the documents of teams by slug.

    `members` are by user name, each with `role` and `source`; `owns` are patterns.
    """
    members: dict[int, dict[str, Any]] = defaultdict(dict)
    memberships = Membership.objects.filter(team__in=teams).order_by("user__username")
    for team_id, name, role, source in memberships.values_list(
        "team_id", "user__username", "role", "source"
    ):
        members[team_id][name] = {"role": role, "source": source}
    owned: dict[int, list[str]] = defaultdict(list)
    ownerships = Ownership.objects.filter(team__in=teams).order_by("pattern")
    for team_id, pattern in ownerships.values_list("team_id", "pattern"):
        owned[team_id].append(pattern)
    return {
        team.slug: {
            **{field: getattr(team, field) for field in FIELDS},
            "parent": team.parent.slug if team.parent else None,
            "members": members[team.pk],
            "owns": owned[team.pk],
        }
        for team in teams.select_related("parent")
    }


def record_changes(
    before: Mapping[str, Document | None], *, actor: Actor, now: datetime, reason: str = ""
) -> list[str]:
    """Record an audit entry for each team that differs from its document `before`, by slug.

    The document is None for a team that did not exist. Returns the slugs of the changed teams. Call
    it last in the transaction, like :func:`controlplane.core.audit.services.record`.
    """
    present = read_documents(Team.objects.filter(slug__in=before))
    changed = [slug for slug in sorted(before) if before[slug] != present.get(slug)]
    audit.record_many(
        [
            {
                "actor": actor,
                "action": _name_action(before[slug], present.get(slug)),
                "target": f"team:{slug}",
                "now": now,
                "reason": reason,
                "before": before[slug],
                "after": present.get(slug),
            }
            for slug in changed
        ]
    )
    if changed:
        wakeups.wake("credentials")
    return changed


def _name_action(before: Document | None, after: Document | None) -> str:
    if before is None:
        return "team.created"
    return "team.changed" if after is not None else "team.deleted"
