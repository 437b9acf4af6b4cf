"""A person's second factors, and whether their role requires one."""

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

from . import trail

Type = Authenticator.Type
SECOND = (Type.TOTP, Type.WEBAUTHN)
"""Types of second factors; recovery codes only replace a lost one."""

MAX_PASSKEYS = 10
SET_UP_FIRST = "Set up a second factor first, at /preferences/security/: your role asks for one."


@dataclass(frozen=True)
class Passkey:
    id: int
    name: str
    created_at: datetime
    last_used_at: datetime | None


@dataclass(frozen=True)
class Factors:
    """A person's second factors; `codes_left` is None without recovery codes."""

    totp_since: datetime | None
    passkeys: tuple[Passkey, ...]
    codes_left: int | None

    @property
    def any(self) -> bool:
        return self.totp_since is not None or bool(self.passkeys)


def of(user: User) -> Factors:
    rows = list(Authenticator.objects.filter(user=user).order_by("pk"))
    totp = next((row for row in rows if row.type == Type.TOTP), None)
    codes = next((row for row in rows if row.type == Type.RECOVERY_CODES), None)
    return Factors(
        totp_since=totp.created_at if totp else None,
        passkeys=tuple(
            Passkey(row.pk, row.data["name"], row.created_at, row.last_used_at)
            for row in rows
            if row.type == Type.WEBAUTHN
        ),
        codes_left=_left(codes) if codes else None,
    )


def has_any(user: User) -> bool:
    return bool(Authenticator.objects.filter(user=user, type__in=SECOND).exists())


def is_required(user: User) -> bool:
    """Return True if this person's role requires a second factor."""
    return user.role in settings.ENTRY.second_factor_roles


@transaction.atomic
def add_totp(*, user: User, secret: str, actor: Actor, now: datetime) -> list[str]:
    """Add an authenticator app; returns new recovery codes if these are the first, else nothing."""
    _lock(user)
    if Authenticator.objects.filter(user=user, type=Type.TOTP).exists():
        raise Conflict("There is an authenticator app already; remove that one first.")
    TOTP.activate(user, secret)
    trail.note("factor.added", user=user, actor=actor, now=now, type=Type.TOTP.value)
    return first_codes(user)


@transaction.atomic
def add_passkey(
    *, user: User, name: str, credential: dict[str, object], actor: Actor, now: datetime
) -> list[str]:
    """Add a passkey that was checked; returns new recovery codes if these are the first."""
    _lock(user)
    if Authenticator.objects.filter(user=user, type=Type.WEBAUTHN).count() >= MAX_PASSKEYS:
        raise Conflict(f"That is {MAX_PASSKEYS} passkeys already; remove one first.")
    Authenticator.objects.create(
        user=user, type=Type.WEBAUTHN, data={"name": name, "credential": credential}
    )
    trail.note("factor.added", user=user, actor=actor, now=now, type="passkey", name=name)
    return first_codes(user)


@transaction.atomic
def remove(*, user: User, factor_id: int | None, actor: Actor, now: datetime) -> None:
    """Remove a passkey by its id, or the authenticator app (None).

    Removing the last second factor removes the recovery codes too. Raises :class:`Conflict` if the
    role requires a second factor.
    """
    _lock(user)
    rows = Authenticator.objects.filter(user=user)
    kind = Type.TOTP if factor_id is None else Type.WEBAUTHN
    chosen = rows.filter(type=kind) if factor_id is None else rows.filter(type=kind, pk=factor_id)
    row = chosen.first()
    if row is None:
        raise NotFound("There is no such second factor.")
    others = rows.filter(type__in=SECOND).exclude(pk=row.pk).exists()
    if not others and is_required(user):
        raise Conflict(f"The role {user.role} asks for a second factor; add another one first.")
    row.delete()
    if not others:
        rows.delete()
    trail.note("factor.removed", user=user, actor=actor, now=now, type=str(kind.value))


@transaction.atomic
def remove_all(*, user: User, actor: Actor, now: datetime) -> None:
    """Remove all second factors of somebody who lost them, and end all their sessions.

    For admins; the caller checks permissions.
    """
    _lock(user)
    sessions.lock(user)
    Authenticator.objects.filter(user=user).delete()
    trail.note("factor.reset", user=user, actor=actor, now=now)
    sessions.end_all(user=user, actor=actor, now=now, reason="Second factors were reset.")


@transaction.atomic
def new_codes(*, user: User, actor: Actor, now: datetime) -> list[str]:
    """Replace the recovery codes; the earlier ones become invalid.

    Raises :class:`Conflict` without a second factor.
    """
    _lock(user)
    if not has_any(user):
        raise Conflict("Recovery codes stand in for a second factor; add one first.")
    Authenticator.objects.filter(user=user, type=Type.RECOVERY_CODES).delete()
    trail.note("factor.codes_made", user=user, actor=actor, now=now)
    return list(RecoveryCodes.activate(user).generate_codes())


def first_codes(user: User) -> list[str]:
    if Authenticator.objects.filter(user=user, type=Type.RECOVERY_CODES).exists():
        return []
    return list(RecoveryCodes.activate(user).generate_codes())


def _left(row: Authenticator) -> int:
    """Return the number of unused codes, from the mask alone: no key is needed."""
    total = 10
    return total - int(row.data.get("used_mask", 0)).bit_count()


def _lock(user: User) -> None:
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
