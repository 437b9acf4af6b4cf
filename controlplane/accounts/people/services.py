"""Services of people: create, change, set passwords."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import structlog
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils.crypto import constant_time_compare

from controlplane.accounts.emergency_codes import services as emergency_codes
from controlplane.accounts.models.people import User
from controlplane.accounts.models.tokens import Credentials
from controlplane.core import wakeups
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, InvalidInput, NotFound
from controlplane.core.json_values import require_readable
from controlplane.core.roles import Role

from . import sessions

CHANGEABLE = ("display_name", "email", "slack_user_id", "role", "time_zone", "is_active")
_ADMINS = Q(role=Role.ADMIN, is_active=True)
MAX_FREE_NAME_LENGTH = 140
SLACK_USER_ID = re.compile(r"[UW][A-Z0-9]{2,30}")

log = structlog.get_logger(__name__)


@transaction.atomic
def create_user(
    *, username: str, password: str | None, role: str, actor: Actor, now: datetime, **more: Any
) -> User:
    """Create a person; raise InvalidInput or Django's ValidationError for invalid values."""
    username = User.normalize_username(username)  # NFKC, as for signing in.
    # Readers of the audit trail could not tell `Kim` from `kim`.
    if taken := User.objects.filter(username__iexact=username).first():
        raise InvalidInput({"username": [f"{taken.username} already exists."]})
    require_readable(display_name=str(more.get("display_name", "")))
    if "slack_user_id" in more:
        more["slack_user_id"] = validate_slack_user_id(more["slack_user_id"], of=None)
    user = User(username=username, role=role, **more)
    user.set_password(password)
    user.full_clean(exclude=["password"])
    try:
        with transaction.atomic():
            user.save()
    # Two requests created the same person at once; the later one fails.
    except IntegrityError as error:
        field = "slack_user_id" if "slack" in str(error) else "username"
        raise InvalidInput({field: ["Someone else has just taken this name."]}) from error
    _record("user.created", user, actor, now, after=_audit_state(user))
    return user


@transaction.atomic
def change_user(*, user: User, actor: Actor, now: datetime, **changes: Any) -> User:
    """Change fields of a person; a changed `is_active` also ends all their sessions.

    Revokes the emergency code of a person who may no longer have one.
    Raises :class:`Conflict` if no active admin would remain.
    """
    require_readable(display_name=str(changes.get("display_name", "")))
    user = lock_user(user)
    before, was_admin, was_active = _audit_state(user), user.is_admin, user.is_active
    for field, value in changes.items():
        if field not in CHANGEABLE:
            raise InvalidInput({field: ["can't be changed here."]})
        if field == "slack_user_id":
            value = validate_slack_user_id(value, of=user)
        setattr(user, field, value)
    # Only changed fields: an address that has become invalid must not prevent a deactivation.
    user.full_clean(exclude={field.name for field in User._meta.fields} - set(changes))
    others = User.objects.filter(_ADMINS).exclude(pk=user.pk)
    if was_admin and not user.is_admin and not others.exists():
        raise Conflict("This is the last active admin. Make someone else an admin first.")
    sessions.lock_sessions(user)
    Credentials.objects.select_for_update().get()  # Before the audit trail: a trigger updates it.
    _record("user.changed", user, actor, now, before=before, after=_audit_state(user))
    if not emergency_codes.may_have(user):
        reason = f"Role changed to {user.role}." if user.is_active else "Account deactivated."
        emergency_codes.revoke_code(user=user, actor=actor, now=now, reason=reason)
    if user.is_active != was_active:
        sessions.end_all(user=user, actor=actor, now=now)
    # Save after the audit entries, which check the permissions of the actor: they may be `user`.
    user.save(update_fields=list(changes))
    wakeups.wake("credentials")
    return user


@transaction.atomic
def change_roles(roles: Mapping[int, Role], *, actor: Actor, now: datetime) -> list[User]:
    """Give people these roles, by user id; return the people whose role changed.

    Revokes the emergency codes of those who may no longer have one. If no active admin would
    remain, one keeps their role.
    """
    people = lock_people(roles)
    changed = [person for person in people if roles.get(person.pk, person.role) != person.role]
    losing = [each for each in changed if each.is_admin and roles[each.pk] != Role.ADMIN]
    if losing and len(losing) == sum(person.is_admin for person in people):
        log.warning("user.role_kept", user=losing[0].username, role=losing[0].role)
        changed.remove(losing[0])
    before = {person.pk: _audit_state(person) for person in changed}
    for person in changed:
        person.role = roles[person.pk]
    rows = [
        {
            "actor": actor,
            "action": "user.changed",
            "target": f"user:{person.username}",
            "now": now,
            "before": before[person.pk],
            "after": _audit_state(person),
        }
        for person in changed
    ]
    audit.record_many(rows)
    holders = emergency_codes.find_holders(changed)
    for person in changed:
        if person.pk in holders and not emergency_codes.may_have(person):
            reason = f"Role changed to {person.role}."
            emergency_codes.revoke_code(user=person, actor=actor, now=now, reason=reason)
    # Save after the audit entries, which check the permissions of the actor.
    for role in {roles[person.pk] for person in changed}:
        theirs = [person.pk for person in changed if roles[person.pk] == role]
        User.objects.filter(pk__in=theirs).update(role=role)
    if changed:
        wakeups.wake("credentials")
    return changed


def validate_slack_user_id(text: str, *, of: User | None) -> str:
    """Return the Slack member ID in `text`, in capitals; an empty text is valid and stays empty.

    Raises :class:`InvalidInput` if the ID is malformed, or in use by a person other than `of`.
    """
    found = text.strip().upper()
    if found and not SLACK_USER_ID.fullmatch(found):
        raise InvalidInput(
            {
                "slack_user_id": [
                    "Enter a Slack member ID such as U024BE7LH, not a name or e-mail address."
                ]
            }
        )
    others = User.objects.exclude(pk=of.pk if of is not None else 0)
    if found and (owner := others.filter(slack_user_id=found).first()):
        raise InvalidInput({"slack_user_id": [f"{owner.username} already uses it."]})
    return found


@transaction.atomic
def set_password(
    *,
    user: User,
    password: str,
    actor: Actor,
    now: datetime,
    must_change: bool = False,
    keep: str | None = None,
) -> None:
    """Set a person's password and end their sessions, except the one with the key `keep`.

    With `must_change`, the person has to choose another one at their next sign-in by password.
    Raises :class:`Conflict` if the password has changed since `user` was loaded.
    """
    current = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    if not constant_time_compare(current.password, user.password):
        raise Conflict("Someone else just changed this password. Nothing changed.")
    user.set_password(password)
    user.must_change_password = must_change
    user.save(update_fields=["password", "must_change_password"])
    sessions.lock_sessions(user)
    _record("user.password_set", user, actor, now)
    sessions.end_all(user=user, actor=actor, now=now, but=keep)


def lock_user(user: User, *others: User) -> User:
    """Lock the user, the users `others` and all active admins; return the user's current row.

    Rows are locked in id order to avoid deadlocks, by `FOR NO KEY UPDATE`, so that rows that refer
    to these users can still be inserted.
    """
    wanted = Q(pk__in=[each.pk for each in (user, *others)]) | _ADMINS
    people = User.objects.select_for_update(no_key=True).filter(wanted).order_by("pk")
    return {row.pk: row for row in people}[user.pk]


def lock_people(user_ids: Iterable[int]) -> list[User]:
    """Lock these people, all active admins, and then the credentials; return the people's rows.

    Call it before writing audit entries in a transaction that changes several people.
    """
    wanted = Q(pk__in=list(user_ids)) | _ADMINS
    people = list(User.objects.select_for_update(no_key=True).filter(wanted).order_by("pk"))
    Credentials.objects.select_for_update().get()
    return people


def find_free_username(proposed: str) -> str:
    """Return an unused user name based on this one, with a number appended if necessary.

    Raises :class:`Conflict` if there is none.
    """
    # Normalize first, because it may add characters that names can't have.
    name = re.sub(r"[^\w.@+-]", "", User.normalize_username(proposed))[:MAX_FREE_NAME_LENGTH]
    name = name or "person"
    for number in range(1, 1000):
        candidate = name if number == 1 else f"{name}-{number}"
        if not User.objects.filter(username__iexact=candidate).exists():
            return candidate
    raise Conflict(f"No user name like {name} is free. An admin must create the account.")


def get_user(user_id: int) -> User:
    """Return a person by id; raise :class:`NotFound`."""
    user = User.objects.filter(pk=user_id).first()
    if user is None:
        raise NotFound(f"No person has the id {user_id}.")
    return user


def find_first_admin() -> User | None:
    """Return the active admin with the lowest id, the default owner of tokens."""
    return User.objects.filter(_ADMINS).order_by("pk").first()


def _record(action: str, user: User, actor: Actor, now: datetime, **states: Any) -> None:
    audit.record(actor=actor, action=action, target=f"user:{user.username}", now=now, **states)


def _audit_state(user: User) -> dict[str, Any]:
    return {field: getattr(user, field) for field in CHANGEABLE}
