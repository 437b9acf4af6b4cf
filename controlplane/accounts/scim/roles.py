"""Roles and memberships of teams that follow from the groups of the identity provider."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from controlplane.accounts.models.people import User
from controlplane.accounts.people import services as people
from controlplane.accounts.teams import groups as team_groups
from controlplane.core.actors import Actor
from controlplane.core.roles import Role

GroupNames = Mapping[int, Collection[str]]


def find_role(before: Collection[str], after: Collection[str], present: str) -> Role:
    """Return the role of a person after a change of their groups.

    Groups without a role leave it as it is; whoever leaves the last group with one is a viewer.
    """
    role = team_groups.strongest_role(after)
    if role is not None:
        return role
    return Role(present) if team_groups.strongest_role(before) is None else Role.VIEWER


def apply_groups(before: GroupNames, after: GroupNames, *, actor: Actor, now: datetime) -> None:
    """Give people, by user id, the memberships and roles of their groups.

    The caller has locked teams and people. Roles come last, because an actor who loses theirs can
    write no audit entries afterwards.
    """
    team_groups.apply_groups_of(after, actor=actor, now=now)
    present = dict(User.objects.filter(pk__in=after).values_list("pk", "role"))
    roles = {pk: find_role(before.get(pk, ()), after[pk], role) for pk, role in present.items()}
    people.change_roles(roles, actor=actor, now=now)


def read_groups(user_ids: Iterable[int]) -> dict[int, set[str]]:
    """Return the names and external ids of the groups of people, by user id."""
    return team_groups.read_directory_groups(list(user_ids))
