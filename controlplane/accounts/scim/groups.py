"""Services of groups: create, replace, patch, delete."""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from controlplane.accounts.models.directory import DirectoryGroup, DirectoryUser
from controlplane.accounts.models.people import User
from controlplane.accounts.people import services as people
from controlplane.accounts.teams.storage import lock_teams
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.ended_sessions import retry_if_ended
from controlplane.core.errors import NotFound

from . import documents, patches, roles
from .errors import InvalidRequest, NotUnique
from .patches import Document
from .schemas import GROUPS

Check = Callable[[DirectoryGroup], None]
_Link = DirectoryGroup.members.through


def get_group(group_id: str) -> DirectoryGroup:
    """Return a group by id; raise :class:`NotFound`."""
    group = DirectoryGroup.objects.filter(pk=documents.parse_id(group_id) or 0).first()
    if group is None:
        raise NotFound(f"The directory has no group with the id {group_id[:40]}.")
    return group


@retry_if_ended
@transaction.atomic
def create_group(*, body: Mapping[str, Any], actor: Actor, now: datetime) -> DirectoryGroup:
    """Create a group with its members; raise :class:`NotUnique` if the name is taken."""
    document = documents.read_group(body)
    lock_teams(to_change=True)
    group = DirectoryGroup(created_at=now, changed_at=now)
    _write(group, document, actor, now)
    return group


def replace_group(
    *, group_id: str, body: Mapping[str, Any], actor: Actor, now: datetime, check: Check
) -> DirectoryGroup:
    """Replace a group's name and members."""
    return _change_group(group_id, lambda _present: body, actor, now, check)


def patch_group(
    *, group_id: str, body: Mapping[str, Any], actor: Actor, now: datetime, check: Check
) -> DirectoryGroup:
    """Carry out PATCH operations, such as adding a member."""
    return _change_group(
        group_id, lambda present: patches.apply_patch(GROUPS, present, body), actor, now, check
    )


@retry_if_ended
@transaction.atomic
def delete_group(*, group_id: str, actor: Actor, now: datetime, check: Check) -> None:
    """Delete a group; its members lose the role and the memberships of teams that it gave them."""
    lock_teams(to_change=True)
    group = get_group(group_id)
    check(group)
    members = _list_members(group)
    before = roles.read_groups(members)
    group.members.clear()
    group.delete()
    people.lock_people(before)
    _record("deleted", group.name, _audit_state(group, removed=members), None, actor, now)
    roles.apply_groups(before, roles.read_groups(before), actor=actor, now=now)


@retry_if_ended
@transaction.atomic
def _change_group(
    group_id: str,
    change: Callable[[Document], Mapping[str, Any]],
    actor: Actor,
    now: datetime,
    check: Check,
) -> DirectoryGroup:
    lock_teams(to_change=True)
    group = get_group(group_id)
    check(group)
    present = {
        "displayName": group.name,
        "externalId": group.external_id,
        "members": [{"value": str(pk)} for pk in _list_members(group)],
    }
    _write(group, documents.read_group(change(present)), actor, now)
    return group


def _write(group: DirectoryGroup, document: Document, actor: Actor, now: datetime) -> None:
    """Store a group's document, and give its people what follows from it."""
    _require_unique(document["displayName"], but=group)
    is_new = group.pk is None
    present = [] if is_new else _list_members(group)
    added = set(document["members"]) - set(present)
    removed = set(present) - set(document["members"])
    _require_known(added)
    is_renamed = (group.name, group.external_id) != (
        document["displayName"],
        document["externalId"],
    )
    if not (added or removed or is_renamed):
        return
    affected = added | removed | (set(present) if is_renamed else set())
    before, state = roles.read_groups(affected), None
    if not is_new:
        state = _audit_state(group, removed=removed)
        group.changed_at = max(now, group.changed_at + timedelta(microseconds=1))
    group.name, group.external_id = document["displayName"], document["externalId"]
    group.save()
    _Link.objects.filter(directorygroup=group, user_id__in=removed).delete()
    _Link.objects.bulk_create(
        _Link(directorygroup=group, user_id=user_id) for user_id in sorted(added)
    )
    people.lock_people(affected)
    after = _audit_state(group, added=added)
    _record("created" if is_new else "changed", group.name, state, after, actor, now)
    roles.apply_groups(before, roles.read_groups(affected), actor=actor, now=now)


def _record(
    change: str,
    name: str,
    before: Document | None,
    after: Document | None,
    actor: Actor,
    now: datetime,
) -> None:
    audit.record(
        actor=actor,
        action=f"group.{change}",
        target=f"group:{name}",
        now=now,
        before=before,
        after=after,
    )


def _audit_state(group: DirectoryGroup, **members: Collection[int]) -> Document:
    """Return a group's state with only the members that a change added or removed."""
    names = {
        key: list(
            User.objects.filter(pk__in=user_ids)
            .order_by("username")
            .values_list("username", flat=True)
        )
        for key, user_ids in members.items()
    }
    return {"name": group.name, "external_id": group.external_id, **names}


def _require_unique(name: str, *, but: DirectoryGroup) -> None:
    if DirectoryGroup.objects.filter(name__iexact=name).exclude(pk=but.pk).exists():
        raise NotUnique(f"The directory has a group named {name} already.")


def _require_known(user_ids: Collection[int]) -> None:
    known = DirectoryUser.objects.filter(pk__in=user_ids).values_list("pk", flat=True)
    unknown = sorted(set(user_ids) - set(known))
    if unknown:
        shown = ", ".join(map(str, unknown[:10]))
        raise InvalidRequest("invalidValue", f"The directory has no users with these ids: {shown}.")


def _list_members(group: DirectoryGroup) -> list[int]:
    rows = _Link.objects.filter(directorygroup=group).order_by("user_id")
    return list(rows.values_list("user_id", flat=True))
