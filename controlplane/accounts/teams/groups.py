"""Memberships that follow the groups of the identity provider."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from controlplane.accounts.models.directory import DirectoryGroup, DirectoryUser
from controlplane.accounts.models.people import User
from controlplane.accounts.models.teams import Membership, Team
from controlplane.core.actors import Actor
from controlplane.core.roles import Role

from .documents import read_documents, record_changes
from .storage import lock_teams

LEAD, MEMBER = Membership.TeamRole.LEAD, Membership.TeamRole.MEMBER
GROUP = Membership.Source.GROUP


@dataclass
class _Changes:
    created: list[Membership] = field(default_factory=list)
    updated: list[Membership] = field(default_factory=list)
    deleted: list[Membership] = field(default_factory=list)

    def team_ids(self) -> set[int]:
        return {each.team_id for each in (*self.created, *self.updated, *self.deleted)}


def apply_groups(user: User, names: Collection[str], *, actor: Actor, now: datetime) -> list[str]:
    """Give a person the memberships that follow from their groups, and no others from groups.

    See :func:`apply_groups_of`.
    """
    return apply_groups_of({user.pk: names}, actor=actor, now=now)


def strongest_role(groups: Collection[str]) -> Role | None:
    """Return the strongest role that OIDC_ROLES gives to these groups; None if it gives none."""
    given = [Role(role) for group, role in settings.OIDC.roles if group in groups]
    return max(given, key=list(Role).index, default=None)


@transaction.atomic
def apply_groups_of(
    groups: Mapping[int, Collection[str]], *, actor: Actor, now: datetime
) -> list[str]:
    """Set the memberships of people, by user id, to those that follow from their groups.

    A lead of a team by one group stays lead if another group makes them a member, too. Memberships
    made by hand stay as they are. Returns the slugs of the changed teams. A caller that locks rows
    first calls :func:`lock_teams` before.
    """
    # Most sign-ins change nothing and need no lock.
    if not _find_changes(groups).team_ids():
        return []
    lock_teams(to_change=True)
    changes = _find_changes(groups)
    before = read_documents(Team.objects.filter(pk__in=changes.team_ids()))
    Membership.objects.filter(pk__in=[each.pk for each in changes.deleted]).delete()
    Membership.objects.bulk_update(changes.updated, ["role"])
    Membership.objects.bulk_create(changes.created)
    return record_changes(before, actor=actor, now=now)


def apply_directory_groups(*, actor: Actor, now: datetime) -> list[str]:
    """Apply the groups of all people that SCIM provisioned; call it if a team's groups changed."""
    provisioned = DirectoryUser.objects.values_list("user_id", flat=True)
    return apply_groups_of(read_directory_groups(provisioned), actor=actor, now=now)


def read_directory_groups(user_ids: Collection[int]) -> dict[int, set[str]]:
    """Return the names and external ids of the groups that SCIM put each of these people in."""
    found: dict[int, set[str]] = {user_id: set() for user_id in user_ids}
    rows = DirectoryGroup.members.through.objects.filter(user_id__in=found)
    for user_id, name, external_id in rows.values_list(
        "user_id", "directorygroup__name", "directorygroup__external_id"
    ):
        found[user_id].update({name, external_id} - {""})
    return found


def choose_groups(user: User, claimed: Collection[str]) -> Collection[str]:
    """Return the groups that count at a sign-in: SCIM's if it provisioned the person, or `claimed`.

    Groups of a sign-in would otherwise undo what the identity provider sent by SCIM since.
    """
    if not DirectoryUser.objects.filter(pk=user.pk).exists():
        return claimed
    return read_directory_groups([user.pk])[user.pk]


def _find_changes(groups: Mapping[int, Collection[str]]) -> _Changes:
    """Return how the memberships of these people, by user id, differ from those of their groups."""
    mapped = Team.objects.exclude(Q(member_group="") & Q(lead_group=""))
    teams = list(mapped.values_list("pk", "member_group", "lead_group"))
    present: dict[int, dict[int, Membership]] = defaultdict(dict)
    for each in Membership.objects.filter(user_id__in=groups):
        present[each.user_id][each.team_id] = each
    changes = _Changes()
    for user_id, names in groups.items():
        wanted = {}
        for team_id, member_group, lead_group in teams:
            if lead_group and lead_group in names:
                wanted[team_id] = LEAD
            elif member_group and member_group in names:
                wanted[team_id] = MEMBER
        for team_id, membership in present[user_id].items():
            role = wanted.pop(team_id, None)
            if membership.source != GROUP:
                continue
            if role is None:
                changes.deleted.append(membership)
            elif membership.role != role:
                membership.role = role
                changes.updated.append(membership)
        changes.created += [
            Membership(team_id=team_id, user_id=user_id, role=role, source=GROUP)
            for team_id, role in wanted.items()
        ]
    return changes
