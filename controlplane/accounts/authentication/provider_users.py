"""Users of single sign-on, whose roles follow the provider's groups at each sign-in."""

import re
from datetime import datetime

import structlog
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from controlplane.accounts.models.people import User
from controlplane.accounts.people import services as people
from controlplane.core.actors import system_actor
from controlplane.core.errors import Conflict, Forbidden
from controlplane.core.roles import Role

from . import audit_entries, links
from .provider import Identity

ACTOR = system_actor("single-sign-on")
log = structlog.get_logger(__name__)


@transaction.atomic
def find_or_create_user(identity: Identity, now: datetime) -> User:
    """Return the user of a verified identity, created if necessary, with the role of its groups.

    If several groups have a role in OIDC_ROLES, the strongest counts. Raises :class:`Forbidden` if
    none has, if the user is deactivated, or if :func:`_find_by_email` does.
    """
    given = [Role(role) for group, role in settings.OIDC.roles if group in identity.groups]
    role = max(given, key=list(Role).index, default=None)
    if role is None:
        raise Forbidden(
            f"{settings.OIDC.name} signed you in, but none of your groups has access to this "
            "console. Ask its administrators which group to join."
        )
    user = links.find_owner(identity.issuer, identity.subject) or _find_by_email(identity, now)
    if user is None:
        user = _create_user(identity, role, now)
    if not user.is_active:
        raise Forbidden("Your account is deactivated. An admin can activate it.")
    if user.role != role:
        try:
            return people.change_user(user=user, actor=ACTOR, now=now, role=role.value)
        except Conflict:
            # The last admin keeps the role, or nobody could appoint another.
            log.warning("single_sign_on.role_kept", user=user.username, role=user.role)
    return user


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
        username=_find_free_name(identity),
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


def _find_free_name(identity: Identity) -> str:
    """Return an unused user name based on the identity's, with a number appended if necessary."""
    proposed = identity.username or identity.email.partition("@")[0]
    # Normalize first, because it may add characters that names can't have.
    name = re.sub(r"[^\w.@+-]", "", User.normalize_username(proposed))[:140] or "person"
    for number in range(1, 1000):
        candidate = name if number == 1 else f"{name}-{number}"
        if not User.objects.filter(username__iexact=candidate).exists():
            return candidate
    raise Forbidden("No user name is available for you. An admin must create your account.")
