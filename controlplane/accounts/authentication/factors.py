"""Second factors of a person: authenticator app, passkeys, recovery codes."""

from dataclasses import dataclass
from datetime import datetime

from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from django.conf import settings
from django.db import transaction

from controlplane.accounts.models.people import User
from controlplane.accounts.people import sessions
from controlplane.core.actors import Actor
from controlplane.core.errors import Conflict, NotFound

from . import audit_entries

Type = Authenticator.Type
SECOND_FACTOR_TYPES = (Type.TOTP, Type.WEBAUTHN)
"""Types that count as a second factor; recovery codes only replace a lost one."""

MAX_PASSKEYS = 10
SET_UP_FIRST = "Your role requires a second factor. Set one up at /preferences/security/."


@dataclass(frozen=True)
class Factors:
    """A person's second factors; `codes_left` is None if the person has no recovery codes."""

    totp_since: datetime | None
    passkeys: tuple[Authenticator, ...]
    codes_left: int | None

    @property
    def any(self) -> bool:
        return self.totp_since is not None or bool(self.passkeys)


def get_factors(user: User) -> Factors:
    rows = list(Authenticator.objects.filter(user=user).order_by("pk"))
    totp = next((row for row in rows if row.type == Type.TOTP), None)
    codes = next((row for row in rows if row.type == Type.RECOVERY_CODES), None)
    return Factors(
        totp_since=totp.created_at if totp else None,
        passkeys=tuple(row for row in rows if row.type == Type.WEBAUTHN),
        # Counting from the mask needs no decryption key.
        codes_left=10 - int(codes.data.get("used_mask", 0)).bit_count() if codes else None,
    )


def has_factor(user: User) -> bool:
    return bool(Authenticator.objects.filter(user=user, type__in=SECOND_FACTOR_TYPES).exists())


def is_required(user: User) -> bool:
    return user.role in settings.ENTRY.second_factor_roles


@transaction.atomic
def add_totp(*, user: User, secret: str, actor: Actor, now: datetime) -> list[str]:
    """Add an authenticator app; return new recovery codes if the person had none."""
    _lock_user(user)
    if Authenticator.objects.filter(user=user, type=Type.TOTP).exists():
        raise Conflict("You already have an authenticator app. Remove it first.")
    TOTP.activate(user, secret)
    audit_entries.record_event(
        "factor.added", user=user, actor=actor, now=now, type=Type.TOTP.value
    )
    return create_first_codes(user)


@transaction.atomic
def add_passkey(
    *, user: User, name: str, credential: dict[str, object], actor: Actor, now: datetime
) -> list[str]:
    """Add a verified passkey; return new recovery codes if the person had none."""
    _lock_user(user)
    if Authenticator.objects.filter(user=user, type=Type.WEBAUTHN).count() >= MAX_PASSKEYS:
        raise Conflict(f"You already have {MAX_PASSKEYS} passkeys. Remove one first.")
    Authenticator.objects.create(
        user=user, type=Type.WEBAUTHN, data={"name": name, "credential": credential}
    )
    audit_entries.record_event(
        "factor.added", user=user, actor=actor, now=now, type="passkey", name=name
    )
    return create_first_codes(user)


@transaction.atomic
def remove_factor(*, user: User, factor_id: int | None, actor: Actor, now: datetime) -> None:
    """Remove the passkey with the id `factor_id`, or if it is None the authenticator app.

    Removing the last second factor also deletes the recovery codes. Raises :class:`NotFound` if
    there is no such factor, and :class:`Conflict` if it is the last one and the role requires one.
    """
    _lock_user(user)
    rows = Authenticator.objects.filter(user=user)
    is_app = factor_id is None
    chosen = {"type": Type.TOTP} if is_app else {"type": Type.WEBAUTHN, "pk": factor_id}
    row = rows.filter(**chosen).first()
    if row is None:
        raise NotFound("This second factor doesn't exist.")
    others = rows.filter(type__in=SECOND_FACTOR_TYPES).exclude(pk=row.pk).exists()
    if not others and is_required(user):
        raise Conflict(f"The role {user.role} requires a second factor. Add another one first.")
    row.delete()
    if not others:
        rows.delete()
    audit_entries.record_event("factor.removed", user=user, actor=actor, now=now, type=row.type)


@transaction.atomic
def remove_all(*, user: User, actor: Actor, now: datetime) -> None:
    """Remove all second factors of a person, and end their sessions; `actor` must be an admin."""
    _lock_user(user)
    sessions.lock_sessions(user)
    Authenticator.objects.filter(user=user).delete()
    audit_entries.record_event("factor.reset", user=user, actor=actor, now=now)
    sessions.end_all(user=user, actor=actor, now=now, reason="Second factors reset.")


@transaction.atomic
def replace_codes(*, user: User, actor: Actor, now: datetime) -> list[str]:
    """Replace and return the recovery codes; raise :class:`Conflict` without a second factor."""
    _lock_user(user)
    if not has_factor(user):
        raise Conflict("Recovery codes replace a second factor. Add a second factor first.")
    Authenticator.objects.filter(user=user, type=Type.RECOVERY_CODES).delete()
    audit_entries.record_event("factor.codes_made", user=user, actor=actor, now=now)
    return list(RecoveryCodes.activate(user).generate_codes())


def create_first_codes(user: User) -> list[str]:
    if Authenticator.objects.filter(user=user, type=Type.RECOVERY_CODES).exists():
        return []
    return list(RecoveryCodes.activate(user).generate_codes())


def _lock_user(user: User) -> None:
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
