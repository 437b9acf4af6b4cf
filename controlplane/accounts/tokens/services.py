"""Services of API tokens: create, authenticate, revoke, hand over."""

import hashlib
import hmac
import re
import secrets
import string
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from controlplane.accounts.models.people import User
from controlplane.accounts.models.tokens import Token
from controlplane.core import wakeups
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, InvalidInput, NotFound, Unauthenticated
from controlplane.core.json_values import require_readable
from controlplane.core.roles import ALL_SCOPES, SCOPES_OF, Role

from .lookup import KnownToken

PREFIX_ALPHABET = string.ascii_lowercase + string.digits
PREFIX_LENGTH = 10
FORM = re.compile(r"sg_(?P<prefix>[a-z0-9]{1,16})_(?P<secret>[A-Za-z0-9_-]{1,128})")
MAX_SERVICES = 100
# Same rule as for service names in reports.
SERVICE = re.compile(r"(?!token:)[^\s/]{1,120}")
USE_NOTED_EVERY = timedelta(minutes=1)
ADMIN_POWERS = {
    "config:read": "It can read people's addresses in the targets.",
    "config:write": "It can change everything that configuration files declare, including targets"
    " and trip policies.",
    "relay": "It receives everything that a data plane holds, including the hashes of tokens and"
    " emergency codes, and reports in the name of every instance.",
    "dlq:write": "Because its owner is an admin, it can also read unredacted dead letters.",
    "slo:write": "Because its owner is an admin, it can also register Prometheus servers, at any"
    " address that PROMETHEUS_ALLOW allows.",
    "breakers:write": "Because its owner is an admin, it can change the policies of every service.",
}


def hash_secret(secret: str) -> str:
    """Return the SHA-256, in hex, of a token's secret part."""
    return hashlib.sha256(secret.encode()).hexdigest()


def split_token(text: str) -> tuple[str, str]:
    """Return prefix and secret of a text `sg_<prefix>_<secret>`, or raise Unauthenticated."""
    parts = FORM.fullmatch(text)
    if parts is None:
        raise Unauthenticated("The token is not of the form sg_<prefix>_<secret>.")
    return parts["prefix"], parts["secret"]


def describe_admin_powers(token: Token) -> list[str]:
    """Return a sentence for each permission that a token has only because its owner is an admin."""
    if token.owner.role != Role.ADMIN:
        return []
    return [text for scope, text in ADMIN_POWERS.items() if scope in token.scopes]


@transaction.atomic
def create_token(
    *,
    name: str,
    owner: User,
    scopes: Iterable[str],
    actor: Actor,
    now: datetime,
    lifetime: timedelta | None = None,
    limit_to: Iterable[str] = (),
) -> tuple[Token, str]:
    """Create a token; return it with its text, which is not stored.

    With `limit_to` the token may report and poll only as one of these services. Raises
    :class:`InvalidInput`, for example for a scope beyond the owner's role.
    """
    require_readable(name=name)
    sorted_scopes, owner = sorted(set(scopes)), _lock_owner(owner)
    allowed_services = sorted(set(limit_to))
    _validate(name, owner, sorted_scopes, allowed_services)
    prefix = "".join(secrets.choice(PREFIX_ALPHABET) for _ in range(PREFIX_LENGTH))
    secret = secrets.token_urlsafe(32)
    token = Token.objects.create(
        name=name.strip(),
        owner=owner,
        prefix=prefix,
        digest=hash_secret(secret),
        scopes=sorted_scopes,
        services=allowed_services,
        created_at=now,
        expires_at=now + lifetime if lifetime else None,
    )
    after = {
        "name": token.name,
        "owner": owner.username,
        "scopes": sorted_scopes,
        "services": allowed_services,
        "expires_at": token.expires_at,
    }
    _record_change("token.created", token, actor, now, after=after)
    return token, f"sg_{prefix}_{secret}"


@transaction.atomic
def revoke_token(*, token: Token, actor: Actor, now: datetime, reason: str = "") -> Token:
    """Revoke a token immediately; repeating it changes nothing."""
    require_readable(reason=reason)
    token = Token.objects.select_for_update().get(pk=token.pk)
    if token.revoked_at is not None:
        return token
    token.revoked_at = now
    token.save(update_fields=["revoked_at"])
    before = {"name": token.name}
    _record_change("token.revoked", token, actor, now, reason=reason, before=before)
    return token


@transaction.atomic
def hand_over_token(*, token: Token, owner: User, actor: Actor, now: datetime) -> Token:
    """Transfer a token to another owner, whose role then limits it; its text stays valid.

    Raises :class:`Conflict` if the token is expired or revoked, and :class:`InvalidInput` if the
    owner is deactivated or their role lacks one of the token's scopes.
    """
    owner = _lock_owner(owner)
    token = Token.objects.select_for_update(of=("self",)).select_related("owner").get(pk=token.pk)
    if token.owner_id == owner.pk:
        return token
    if token.revoked_at is not None or (token.expires_at and token.expires_at <= now):
        raise Conflict(f"{token.name} has ended, so it needs no owner.")
    _validate(token.name, owner, token.scopes)
    before = {"name": token.name, "owner": token.owner.username}
    token.owner = owner
    token.save(update_fields=["owner"])
    after = {"name": token.name, "owner": owner.username}
    _record_change("token.handed_over", token, actor, now, before=before, after=after)
    return token


def get_token(token_id: int, tokens: QuerySet[Token] | None = None) -> Token:
    """Return the token with this id, among `tokens` if given; raise :class:`NotFound`."""
    token = (Token.objects.all() if tokens is None else tokens).filter(pk=token_id).first()
    if token is None:
        raise NotFound(f"There is no token {token_id}.")
    return token


def _record_change(action: str, token: Token, actor: Actor, now: datetime, **more: Any) -> None:
    target = f"token:{token.prefix}"
    audit.record(actor=actor, action=action, target=target, now=now, **more)
    wakeups.wake("credentials")


def _lock_owner(owner: User) -> User:
    """Lock and return the owner's current row; call before locking a token."""
    return User.objects.select_for_update(no_key=True).get(pk=owner.pk)


def authenticate_token(text: str) -> Token:
    """Return the usable token with this text, compared in constant time; raise Unauthenticated."""
    prefix, secret = split_token(text)
    rows = Token.objects.select_related("owner").usable(Now()).annotate(checked_at=Now())
    token = rows.filter(prefix=prefix).first()
    expected = token.digest if token else "0" * 64
    if not hmac.compare_digest(hash_secret(secret), expected) or token is None:
        raise Unauthenticated("The token is unknown, expired or revoked.")
    now: datetime = token.checked_at  # type: ignore[attr-defined]  # annotated above
    if token.last_used_at is None or now - token.last_used_at > USE_NOTED_EVERY:
        Token.objects.filter(pk=token.pk).update(last_used_at=now)
    return token


def find_allowed_scopes(token: Token) -> frozenset[str]:
    """Return the token's scopes, limited to those of its owner's role."""
    return frozenset(token.scopes) & SCOPES_OF[Role(token.owner.role)]


def to_known_token(token: Token) -> KnownToken:
    return KnownToken(
        token_id=token.pk,
        name=token.name,
        owner_id=token.owner_id,
        role=Role(token.owner.role),
        scopes=find_allowed_scopes(token),
        services=frozenset(token.services),
    )


def _validate(name: str, owner: User, scopes: list[str], limit_to: Sequence[str] = ()) -> None:
    errors: dict[str, list[str]] = {}
    if not name.strip() or len(name) > 120:
        errors["name"] = ["Give the token a name of 1 to 120 characters."]
    unknown = [scope for scope in scopes if scope not in ALL_SCOPES]
    beyond = sorted(set(scopes) - set(unknown) - SCOPES_OF[Role(owner.role)])
    known = ", ".join(sorted(ALL_SCOPES))
    if not scopes:
        errors["scopes"] = [f"Choose at least one of: {known}."]
    elif unknown:
        errors["scopes"] = [f"Unknown: {', '.join(unknown)}. Known: {known}."]
    elif beyond:
        errors["scopes"] = [f"{owner.username} ({owner.role}) may not use: {', '.join(beyond)}."]
    wrong = [each for each in limit_to if not (SERVICE.fullmatch(each) and each.isprintable())]
    if wrong:
        errors["services"] = [
            f"Not valid as service names: {', '.join(wrong)}. Leave out spaces and slashes."
        ]
    elif len(limit_to) > MAX_SERVICES:
        errors["services"] = [f"At most {MAX_SERVICES} services."]
    if not owner.is_active:
        errors["owner"] = [f"{owner.username} is deactivated."]
    if errors:
        raise InvalidInput(errors)
