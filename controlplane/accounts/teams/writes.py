"""Writes of changed teams to the database, with the checks that concern other rows."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from controlplane.accounts.models.directory import DirectoryUser
from controlplane.accounts.models.people import User
from controlplane.accounts.models.teams import Membership, Ownership, Team
from controlplane.accounts.models.tokens import Token
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.json_values import Errors, add_error

from .changes import EMPTY, Diff, is_outdated
from .documents import read_documents

HAND, GROUP = Membership.Source.HAND, Membership.Source.GROUP
COLUMNS = ("name", "description", "runbook_url", "member_group", "lead_group")
OUTDATED = "The team has changed since this request. Request the change again."
MAX_NAMED = 10


def apply_diff(slug: str, diff: Diff, now: datetime) -> None:
    """Apply a diff to the team, which may be new or be deleted; the caller holds the teams' lock.

    Raise :class:`Conflict` if the team no longer is as it was when the diff was made, or can't be
    deleted, and :class:`InvalidInput`.
    """
    team = Team.objects.filter(slug=slug).first()
    creates = diff.get("team", [slug])[0] is None
    if creates != (team is None):
        raise Conflict(f"The team {slug} already exists." if creates else OUTDATED)
    if team is None:
        team = Team(slug=slug, created_at=now)
        document = EMPTY
    else:
        document = read_documents(Team.objects.filter(pk=team.pk))[slug]
    if is_outdated(document, diff):
        raise Conflict(OUTDATED)
    if diff.get("team", [None, slug])[1] is None:
        _delete(team, now)
        return
    errors: Errors = {}
    _set_columns(team, diff, errors)
    _set_parent(team, diff, errors)
    people = _find_people(diff, errors)
    _require_free_patterns(team, diff, errors)
    if errors:
        raise InvalidInput(errors)
    team.save()
    _write_members(team, diff, people)
    _write_patterns(team, diff)
    if "member_group" in diff or "lead_group" in diff:
        _end_group_memberships(team)


def require_no_group_members(document: Mapping[str, Any], names: Collection[str]) -> None:
    """Raise :class:`InvalidInput` if one of these people is a member by a group."""
    found = [
        name for name in names if document["members"].get(name, {}).get("source") == str(GROUP)
    ]
    if found:
        raise InvalidInput(
            {
                "members": [
                    f"{', '.join(found[:MAX_NAMED])}: a member by a group of the identity provider."
                    " Change the group there."
                ]
            }
        )


def _set_columns(team: Team, diff: Diff, errors: Errors) -> None:
    for field in COLUMNS:
        if field in diff:
            setattr(team, field, diff[field][1])
    if "name" in diff:
        other = Team.objects.filter(name__iexact=team.name).exclude(pk=team.pk).first()
        if other is not None:
            add_error(errors, "name", f"A team named {other.name} already exists ({other.slug}).")


def _set_parent(team: Team, diff: Diff, errors: Errors) -> None:
    if "parent" not in diff:
        return
    wanted = diff["parent"][1]
    team.parent = Team.objects.filter(slug=wanted).first() if wanted else None
    if wanted and team.parent is None:
        add_error(errors, "parent", f"There is no team {wanted}.")
    above = team.parent
    while above is not None:
        if above.slug == team.slug:
            add_error(errors, "parent", f"{wanted} is {team.slug} itself, or a team below it.")
            return
        above = above.parent


def _find_people(diff: Diff, errors: Errors) -> dict[str, User]:
    """Return the people whose membership changes, by user name."""
    before, after = diff.get("members", [{}, {}])
    people = {one.username: one for one in User.objects.filter(username__in=[*before, *after])}
    for name in after:
        if name not in people:
            add_error(errors, "members", f"There is no person {name}.")
        elif name not in before and not people[name].is_active:
            add_error(errors, "members", f"{name} is deactivated.")
    return people


def _require_free_patterns(team: Team, diff: Diff, errors: Errors) -> None:
    before, after = diff.get("owns", [[], []])
    added = set(after) - set(before)
    taken = Ownership.objects.filter(pattern__in=added).exclude(team__slug=team.slug)
    rows = taken.select_related("team").order_by("pattern")
    for row in rows[:MAX_NAMED]:
        add_error(
            errors,
            "owns",
            f"{row.team.name} owns {row.pattern}. Remove it there first, or use a more specific"
            " pattern.",
        )


def _write_members(team: Team, diff: Diff, people: Mapping[str, User]) -> None:
    before, after = diff.get("members", [{}, {}])
    memberships = Membership.objects.filter(team=team)
    memberships.filter(user__username__in=[one for one in before if one not in after]).delete()
    for name in after:
        if name in before:
            memberships.filter(user=people[name]).update(role=after[name])
    Membership.objects.bulk_create(
        Membership(team=team, user=people[name], role=role, source=HAND)
        for name, role in after.items()
        if name not in before
    )


def _write_patterns(team: Team, diff: Diff) -> None:
    before, after = diff.get("owns", [[], []])
    Ownership.objects.filter(team=team, pattern__in=set(before) - set(after)).delete()
    Ownership.objects.bulk_create(
        Ownership(team=team, pattern=pattern) for pattern in after if pattern not in before
    )


def _end_group_memberships(team: Team) -> None:
    """End the memberships by former groups; people get those of the new ones when they sign in.

    Memberships of people whom SCIM provisioned are set by their groups, which are known.
    """
    known = DirectoryUser.objects.values("user_id")
    Membership.objects.filter(team=team, source=GROUP).exclude(user_id__in=known).delete()


def _delete(team: Team, now: datetime) -> None:
    """Delete the team; raise :class:`Conflict` while it has teams below it or tokens in use."""
    if below := list(team.children.order_by("name").values_list("name", flat=True)):
        raise Conflict(
            f"{', '.join(below[:MAX_NAMED])}: below this team. Move or delete them first.",
            below=below,
        )
    tokens = Token.objects.filter(team=team)
    in_use = tokens.filter(revoked_at=None).exclude(expires_at__lte=now)
    if names := list(in_use.order_by("name").values_list("name", flat=True)):
        raise Conflict(
            f"{', '.join(names[:MAX_NAMED])}: tokens of this team. Revoke them first.",
            tokens=names,
        )
    tokens.update(team=None)
    team.delete()
