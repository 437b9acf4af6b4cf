"""Services of emergency codes: create, replace, revoke, and record the use of a code."""

from collections.abc import Collection
from datetime import datetime

from django.db import transaction
from django.db.models import Q
from django.views.decorators.debug import sensitive_variables

from controlplane.accounts.models.emergency_codes import EmergencyCode
from controlplane.accounts.models.people import User
from controlplane.core import wakeups
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import Forbidden
from controlplane.core.outbox import services as outbox
from controlplane.core.roles import SCIM, SCOPES_OF, Power, Role

from . import codes

SCOPE = "switches:emergency"
ROLES = tuple(role for role in Role if SCOPE in SCOPES_OF[role])
EVENT = "user.emergency_code_changed"


def may_have(user: User) -> bool:
    """Return True if the person is active and has a role that allows emergency orders."""
    return user.is_active and user.role in ROLES


def get_current(user: User) -> EmergencyCode | None:
    return EmergencyCode.objects.current().filter(user=user).first()


def find_holders(people: Collection[User]) -> set[int]:
    """Return the ids of those of these people who have a code."""
    codes = EmergencyCode.objects.current().filter(user__in=people)
    return set(codes.values_list("user_id", flat=True))


@sensitive_variables("code")
@transaction.atomic
def create_code(*, user: User, actor: Actor, now: datetime) -> str:
    """Create or replace the person's own code; return its text, which is not stored.

    Raise :class:`Forbidden` if the role doesn't allow a code, or the actor is someone else.
    """
    actor.require(SCOPE)
    if actor.type != "user" or actor.user_id != user.pk:
        raise Forbidden("Only you can create your emergency code, on your security page.")
    code, salt = codes.generate_code(), codes.generate_salt()
    digest = codes.hash_code(code, salt)
    user = _lock_user(user)
    is_replaced = _revoke_current(user, now)
    EmergencyCode.objects.create(user=user, salt=salt.hex(), digest=digest.hex(), created_at=now)
    _record_change("replaced" if is_replaced else "created", user, actor, now)
    return code


@transaction.atomic
def revoke_code(*, user: User, actor: Actor, now: datetime, reason: str = "") -> bool:
    """Revoke a person's code, if there is one; return True if there was.

    Raise :class:`Forbidden` if the actor is neither this person, an admin nor the directory.
    """
    if not (actor.may(SCIM) or (actor.is_person and actor.user_id == user.pk)):
        actor.require_power(Power.ADMINISTER)
    _lock_user(user)
    if not _revoke_current(user, now):
        return False
    _record_change("revoked", user, actor, now, reason)
    return True


def record_use(user_id: int, at: datetime) -> None:
    """Record that a data plane accepted an order with the person's code at `at`.

    Call it before writing audit entries, as a replacement locks the code before the audit trail.
    """
    used = EmergencyCode.objects.valid_at(at).filter(user=user_id)
    used.filter(Q(last_used_at=None) | Q(last_used_at__lt=at)).update(last_used_at=at)


def _lock_user(user: User) -> User:
    return User.objects.select_for_update(no_key=True).get(pk=user.pk)


def _revoke_current(user: User, now: datetime) -> bool:
    return bool(EmergencyCode.objects.current().filter(user=user).update(revoked_at=now))


def _record_change(change: str, user: User, actor: Actor, now: datetime, reason: str = "") -> None:
    """Write the audit entry and a message to the person; neither has the code."""
    audit.record(
        actor=actor,
        action=f"emergency_code.{change}",
        target=f"user:{user.username}",
        reason=reason,
        now=now,
    )
    addresses = {"email": user.email, "slack": user.slack_user_id}
    outbox.announce(
        event=EVENT,
        event_key=f"emergency-code:{user.pk}:{change}:{now.timestamp()}",
        facts={
            "username": user.username,
            "change": change,
            "by": actor.label,
            "ip": actor.ip,
            "reason": reason,
            "path": "/preferences/security/",
        },
        to=[f"{key}:{address}" for key, address in addresses.items() if address and user.is_active],
        now=now,
    )
    wakeups.wake("credentials")
