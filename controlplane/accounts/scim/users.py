"""Services of users: create, replace, patch, deactivate."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from controlplane.accounts.models.directory import DirectoryGroup, DirectoryUser
from controlplane.accounts.models.people import User
from controlplane.accounts.people import services as people
from controlplane.accounts.people import sessions
from controlplane.accounts.teams import groups as team_groups
from controlplane.accounts.teams.storage import lock_teams
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.ended_sessions import retry_if_ended
from controlplane.core.errors import Conflict, NotFound
from controlplane.core.roles import Role

from . import documents, patches, roles
from .errors import NotUnique
from .patches import Document
from .schemas import USERS

LINK = ("userName", "externalId")
STORED = ("userName", "displayName", "name", "emails")
Check = Callable[[DirectoryUser], None]


def get_user(user_id: str) -> DirectoryUser:
    """Return a user by id; raise :class:`NotFound`."""
    rows = DirectoryUser.objects.select_related("user")
    row = rows.filter(pk=documents.parse_id(user_id) or 0).first()
    if row is None:
        raise NotFound(f"The directory has no user with the id {user_id[:40]}.")
    return row


@retry_if_ended
@transaction.atomic
def create_user(*, body: Mapping[str, Any], actor: Actor, now: datetime) -> DirectoryUser:
    """Create a user, with a new account or the one that they already have here.

    An existing account has the same user name, or else the same e-mail address. Raises
    :class:`NotUnique` if the directory has the user name already.
    """
    document = documents.read_user(body)
    lock_teams(to_change=True)
    _require_unique(document["userName"], but=None)
    user = _find_account(document)
    if user is None:
        user = people.create_user(
            username=people.find_free_username(document["userName"]),
            password=None,
            role=Role.VIEWER.value,
            actor=actor,
            now=now,
            display_name=documents.choose_display_name(document),
            email=documents.choose_email(document),
            is_active=document["active"],
        )
    else:
        user = _lock(user)
    _record_link("linked", user, None, document, actor, now)
    _change_account(user, {}, document, user.role, actor, now)
    return DirectoryUser.objects.create(
        user=user,
        external_id=document["externalId"],
        attributes=_stored(document),
        created_at=now,
        changed_at=now,
    )


def replace_user(
    *, user_id: str, body: Mapping[str, Any], actor: Actor, now: datetime, check: Check
) -> DirectoryUser:
    """Replace a user's attributes; those that are missing are removed.

    Raises :class:`Conflict` if no active admin would remain.
    """
    return _change_user(user_id, lambda _present: body, actor, now, check)


def patch_user(
    *, user_id: str, body: Mapping[str, Any], actor: Actor, now: datetime, check: Check
) -> DirectoryUser:
    """Carry out PATCH operations; raises as :func:`replace_user` does."""
    return _change_user(
        user_id, lambda present: patches.apply_patch(USERS, present, body), actor, now, check
    )


@retry_if_ended
@transaction.atomic
def delete_user(*, user_id: str, actor: Actor, now: datetime, check: Check) -> None:
    """Deactivate a person and take them out of the directory and its groups.

    The account stays, for its history, and can be provisioned again. Raises :class:`Conflict` for
    the last active admin.
    """
    lock_teams(to_change=True)
    row = get_user(user_id)
    check(row)
    user = _lock(row.user)
    names = roles.read_groups([user.pk])[user.pk]
    groups = DirectoryGroup.objects.filter(members=user)
    for group in groups:
        group.changed_at = _later(group.changed_at, now)
    DirectoryGroup.objects.bulk_update(groups, ["changed_at"])
    row.user.directory_groups.clear()
    row.delete()
    team_groups.apply_groups(user, (), actor=actor, now=now)
    linked = {**row.attributes, "externalId": row.external_id}
    _record_link("unlinked", user, linked, None, actor, now)
    changes: Document = {"is_active": False} if user.is_active else {}
    role = roles.find_role(names, (), user.role)
    if role != user.role:
        changes["role"] = role.value
    if changes:
        people.change_user(user=user, actor=actor, now=now, **changes)


@retry_if_ended
@transaction.atomic
def _change_user(
    user_id: str,
    change: Callable[[Document], Mapping[str, Any]],
    actor: Actor,
    now: datetime,
    check: Check,
) -> DirectoryUser:
    lock_teams(to_change=True)
    row = get_user(user_id)
    check(row)
    user = _lock(row.user)
    before = {**row.attributes, "externalId": row.external_id, "active": user.is_active}
    document = documents.read_user({"active": user.is_active, **change(before)})
    _require_unique(document["userName"], but=row)
    names = roles.read_groups([user.pk])[user.pk]
    role = roles.find_role(names, names, user.role)
    if any(before[name] != document[name] for name in LINK):
        _record_link("linked", user, before, document, actor, now)
    row.user = _change_account(user, before, document, role, actor, now)
    stored = _stored(document)
    if (row.attributes, row.external_id) != (stored, document["externalId"]):
        row.attributes, row.external_id = stored, document["externalId"]
        row.changed_at = _later(row.changed_at, now)
        row.save(update_fields=["attributes", "external_id", "changed_at"])
    return row


def _lock(user: User) -> User:
    """Lock the person's rows in the order of all services; return the current row."""
    found = {person.pk: person for person in people.lock_people([user.pk])}[user.pk]
    sessions.lock_sessions(found)
    return found


def _change_account(
    user: User, before: Document, document: Document, role: str, actor: Actor, now: datetime
) -> User:
    """Change the fields of the account that differ from the document.

    Missing names and addresses stay as they are if the directory never had them.
    """
    wanted: Document = {"is_active": document["active"], "role": str(role)}
    for field, choose in (
        ("display_name", documents.choose_display_name),
        ("email", documents.choose_email),
    ):
        if choose(document) or choose(before):
            wanted[field] = choose(document)
    changes = {field: value for field, value in wanted.items() if getattr(user, field) != value}
    if not changes:
        return user
    try:
        return people.change_user(user=user, actor=actor, now=now, **changes)
    except Conflict:
        if not document["active"] or "role" not in changes:
            raise
    # The last admin keeps the role, or nobody could appoint another.
    del changes["role"]
    return people.change_user(user=user, actor=actor, now=now, **changes) if changes else user


def _record_link(
    change: str,
    user: User,
    before: Document | None,
    after: Document | None,
    actor: Actor,
    now: datetime,
) -> None:
    """Record which user of the directory an account belongs to."""
    audit.record(
        actor=actor,
        action=f"user.{change}",
        target=f"user:{user.username}",
        now=now,
        before=before and {name: before[name] for name in LINK},
        after=after and {name: after[name] for name in LINK},
    )


def _require_unique(user_name: str, *, but: DirectoryUser | None) -> None:
    others = DirectoryUser.objects.exclude(pk=but.pk if but else 0)
    if others.filter(attributes__userName__iexact=user_name).exists():
        raise NotUnique(f"The directory has a user named {user_name} already.")


def _find_account(document: Document) -> User | None:
    """Find the account outside of the directory with the user name, else with the address.

    An account of that name with another address is somebody else's. Raises :class:`NotUnique` if
    several accounts have the address.
    """
    accounts = User.objects.filter(directory=None)
    named = accounts.filter(username__iexact=document["userName"])
    name = _fold(document["userName"])
    found = next((user for user in named if _fold(user.username) == name), None)
    known = {_fold(each["value"]) for each in document["emails"]}
    if found is not None and (not (found.email and known) or _fold(found.email) in known):
        return found
    address = documents.choose_email(document)
    if not address:
        return None
    matching = accounts.filter(email__iexact=address)
    alike = [user for user in matching if _fold(user.email) == _fold(address)]
    if len(alike) > 1:
        raise NotUnique(f"Several accounts here have the address {address}; an admin must fix it.")
    return alike[0] if alike else None


def _fold(text: str) -> bytes:
    # The database also equates different letters, such as `ı` and `i`.
    return text.encode().lower()


def _stored(document: Document) -> Document:
    return {name: document[name] for name in STORED}


def _later(before: datetime, now: datetime) -> datetime:
    """Return a time after the last change, because versions depend on it."""
    return max(now, before + timedelta(microseconds=1))
