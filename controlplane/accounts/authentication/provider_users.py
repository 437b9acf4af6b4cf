"""Users of single sign-on, whose roles follow the provider's groups at each sign-in."""

from datetime import datetime

import structlog
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from controlplane.accounts.models.people import User
from controlplane.accounts.people import services as people
from controlplane.accounts.teams import groups as team_groups
from controlplane.accounts.teams.storage import lock_teams
from controlplane.core.actors import system_actor
from controlplane.core.errors import Conflict, Forbidden
from controlplane.core.roles import Role

from . import audit_entries, links
from .provider import Identity

ACTOR = system_actor("single-sign-on")
log = structlog.get_logger(__name__)


@transaction.atomic
def find_or_create_user(identity: Identity, now: datetime) -> User:
    """Return the user of a verified identity, created if necessary, with what its groups give.

    Groups give the strongest role by OIDC_ROLES, and memberships of teams. If SCIM provisioned the
    user, the groups that it sent count. Raises :class:`Forbidden` if no group has a role, if the
    user is deactivated, or if :func:`_find_by_email` does.
    """
    lock_teams(to_change=True)
    people.lock_people(())  # Before the first audit entry, like the teams.
    user = (
        links.find_owner(identity.issuer, identity.subject)
        or _find_provisioned(identity, now)
        or _find_by_email(identity, now)
    )
    groups = identity.groups if user is None else team_groups.choose_groups(user, identity.groups)
    role = team_groups.strongest_role(groups)
    if role is None:
        raise Forbidden(
            f"{settings.OIDC.name} signed you in, but none of your groups has access to this "
            "console. Ask its administrators which group to join."
        )
    if user is None:
        user = _create_user(identity, role, now)
    if not user.is_active:
        raise Forbidden("Your account is deactivated. An admin can activate it.")
    team_groups.apply_groups(user, groups, actor=ACTOR, now=now)
    if user.role != role:
        try:
            return people.change_user(user=user, actor=ACTOR, now=now, role=role.value)
        except Conflict:
            # The last admin keeps the role, or nobody could appoint another.
            log.warning("single_sign_on.role_kept", user=user.username, role=user.role)
    return user


def _find_provisioned(identity: Identity, now: datetime) -> User | None:
    """Find the user that SCIM provisioned with the identity's id, and link them to the identity."""
    ids = {identity.subject, identity.object_id} - {""}
    users = list(User.objects.filter(directory__external_id__in=ids)[:2])
    if len(users) != 1 or links.is_linked(users[0]):
        return None
    return _link_user(users[0], identity, now)


def _find_by_email(identity: Identity, now: datetime) -> User | None:
    """Find the user with the identity's verified e-mail address, and link them to the identity.

    Return None if there is none. Raises :class:`Forbidden` if several users have the address, or
    the user has another identity.
    """
    if not (identity.email and identity.email_verified):
        return None
    # The database also equates `ı` with `i` and `ſ` with `s`, which are different mailboxes. So
    # bytes are compared: their `lower()` only changes ASCII letters.
    address = identity.email.encode().lower()
    users = User.objects.filter(email__iexact=identity.email)
    found = [user for user in users if user.email.encode().lower() == address]
    if not found:
        return None
    if len(found) > 1:
        raise Forbidden(
            f"Several accounts here have the address {identity.email}; an admin must fix this."
        )
    if not links.is_linked(found[0]):
        return _link_user(found[0], identity, now)
    raise Forbidden(
        f"The account {found[0].username} belongs to another user of {settings.OIDC.name}; an admin"
        " must fix this."
    )


def _create_user(identity: Identity, role: Role, now: datetime) -> User:
    user = people.create_user(
        username=people.find_free_username(identity.username or identity.email.partition("@")[0]),
        password=None,
        role=role.value,
        actor=ACTOR,
        now=now,
        display_name=identity.name[:150],
        email=identity.email if identity.email_verified and _is_address(identity.email) else "",
    )
    return _link_user(user, identity, now)


def _is_address(text: str) -> bool:
    try:
        validate_email(text)
    except ValidationError:
        return False
    return True


def _link_user(user: User, identity: Identity, now: datetime) -> User:
    links.link_user(user, identity.issuer, identity.subject)
    audit_entries.record_event(
        "user.linked", user=user, actor=ACTOR, now=now, issuer=identity.issuer
    )
    return user
