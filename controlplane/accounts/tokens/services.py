"""Services of API tokens: create, authenticate, revoke, hand over."""

import hashlib
import hmac
import re
import secrets
import string
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from controlplane.accounts.models.people import User
from controlplane.accounts.models.teams import MAX_PATTERN_LENGTH, Team
from controlplane.accounts.models.tokens import Token
from controlplane.accounts.teams.storage import read_teams
from controlplane.core import authority, wakeups
from controlplane.core.actions import Action
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, Forbidden, InvalidInput, NotFound, Unauthenticated
from controlplane.core.json_values import require_readable
from controlplane.core.ownership import find_problem
from controlplane.core.roles import ALL_SCOPES, EXCLUSIVE_SCOPES, SCIM, SCOPES_OF, Power, Role

from .lookup import KnownToken

PREFIX_ALPHABET = string.ascii_lowercase + string.digits
PREFIX_LENGTH = 10
FORM = re.compile(r"sg_(?P<prefix>[a-z0-9]{1,16})_(?P<secret>[A-Za-z0-9_-]{1,128})")
MAX_NAME_LENGTH = 120
MAX_SERVICES = 100
MAX_PATTERNS = 50
MAX_PROBLEMS = 5
# Same rule as for service names in reports.
SERVICE = re.compile(r"(?!token:)[^\s/]{1,120}")
USE_NOTED_EVERY = timedelta(minutes=1)
ADMIN_POWERS = {
    "config:read": "It can read people's addresses in the targets.",
    "config:write": "It can change everything that configuration files declare, including targets"
    " and trip policies.",
    "relay": "It receives everything that a data plane holds, including the hashes of tokens and"
    " emergency codes, and reports in the name of every instance.",
    SCIM: "It can create people, give them any role by their groups, and deactivate them.",
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
    if token.role != Role.ADMIN:
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
    team: Team | None = None,
    patterns: Iterable[str] = (),
    only_owned: bool = False,
) -> tuple[Token, str]:
    """Create a token; return it with its text, which is not stored.

    With `limit_to` the token may report and poll only as one of these services, with `patterns` it
    may change only these resources, and with `only_owned` only those of its teams. Raises
    :class:`InvalidInput`, for example for a scope beyond the owner's role.
    """
    patterns = sorted(set(patterns))
    require_readable(name=name, patterns="\n".join(patterns))
    token = Token(
        name=name.strip(),
        owner=_lock_owner(owner),
        team=team,
        scopes=sorted(set(scopes)),
        services=sorted(set(limit_to)),
        patterns=patterns,
        only_owned=only_owned,
        created_at=now,
        expires_at=now + lifetime if lifetime else None,
    )
    validate(token)
    text = save_with_secret(token)
    record_token_change("token.created", token, actor, now, after=describe_token(token))
    return token, text


def save_with_secret(token: Token) -> str:
    """Save a new token with a new prefix and secret; return its text."""
    token.prefix = "".join(secrets.choice(PREFIX_ALPHABET) for _ in range(PREFIX_LENGTH))
    secret = secrets.token_urlsafe(32)
    token.digest = hash_secret(secret)
    token.save()
    return f"sg_{token.prefix}_{secret}"


def describe_token(token: Token) -> dict[str, Any]:
    """Return the fields of a token for the audit trail."""
    return {
        "name": token.name,
        "owner": token.owner.username,
        "team": token.team.slug if token.team else None,
        "scopes": token.scopes,
        "services": token.services,
        "patterns": token.patterns,
        "only_owned": token.only_owned,
        "expires_at": token.expires_at,
    }


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
    record_token_change("token.revoked", token, actor, now, reason=reason, before=before)
    return token


@transaction.atomic
def hand_over_token(
    *, token: Token, owner: User, actor: Actor, now: datetime, team: Team | None = None
) -> Token:
    """Transfer a token to another owner, whose role then limits it, or to a team.

    Its text stays valid. The `owner` of a team's token is the person to ask about it. Raises
    :class:`Conflict` if the token is expired or revoked, and :class:`InvalidInput` if the
    owner is deactivated or their role lacks one of the token's scopes.
    """
    owner = _lock_owner(owner)
    token = lock_token(token)
    if (token.owner_id, token.team_id) == (owner.pk, team and team.pk):
        return token
    if token.has_ended(now):
        raise Conflict(f"{token.name} has ended, so it needs no owner.")
    before = _describe_owner(token)
    token.owner, token.team = owner, team
    validate(token)
    token.save(update_fields=["owner", "team"])
    after = _describe_owner(token)
    record_token_change("token.handed_over", token, actor, now, before=before, after=after)
    return token


def lock_token(token: Token) -> Token:
    """Lock and return the current row of a token, with its owner and team."""
    rows = Token.objects.select_for_update(of=("self",)).select_related("owner", "team")
    return rows.get(pk=token.pk)


def _describe_owner(token: Token) -> dict[str, Any]:
    described = {"name": token.name, "owner": token.owner.username}
    return {**described, "team": token.team.slug} if token.team else described


def may_manage(token: Token, actor: Actor) -> bool:
    """Return True if the actor may rotate and revoke a token.

    Admins and the token's owner may; for a team's token, everyone who may edit the team.
    """
    if actor.has(Power.ADMINISTER):
        return True
    if token.team is not None:
        return authority.decide(actor, Action.EDIT, f"team:{token.team.slug}").is_allowed
    return actor.is_person and actor.user_id == token.owner_id


def require_may_manage(token: Token, actor: Actor) -> None:
    """Raise :class:`Forbidden` unless the actor may rotate and revoke the token."""
    if may_manage(token, actor):
        return
    if token.team is not None:
        authority.require(actor, Action.EDIT, f"team:{token.team.slug}")
    raise Forbidden(f"Only {token.owner.username} and admins may change {token.name}.")


def find_team(slug: str) -> Team | None:
    """Return the team with this slug, None for ""; raise :class:`InvalidInput` if unknown."""
    team = Team.objects.filter(slug=slug).first() if slug else None
    if slug and team is None:
        raise InvalidInput({"team": [f"There is no team {slug}."]})
    return team


def get_token(token_id: int, tokens: QuerySet[Token] | None = None) -> Token:
    """Return the token with this id, among `tokens` if given; raise :class:`NotFound`."""
    token = (Token.objects.all() if tokens is None else tokens).filter(pk=token_id).first()
    if token is None:
        raise NotFound(f"There is no token {token_id}.")
    return token


def record_token_change(
    action: str, token: Token, actor: Actor, now: datetime, **more: Any
) -> None:
    """Write an audit row about a token, and let data planes read the tokens again."""
    target = f"token:{token.prefix}"
    audit.record(actor=actor, action=action, target=target, now=now, **more)
    wakeups.wake("credentials")


def _lock_owner(owner: User) -> User:
    """Lock and return the owner's current row; call before locking a token."""
    return User.objects.select_for_update(no_key=True).get(pk=owner.pk)


def authenticate_token(text: str) -> Token:
    """Return the usable token with this text, compared in constant time; raise Unauthenticated."""
    prefix, secret = split_token(text)
    rows = Token.objects.select_related("owner", "team").usable(Now()).annotate(checked_at=Now())
    token = rows.filter(prefix=prefix).first()
    expected = token.digest if token else "0" * 64
    if not hmac.compare_digest(hash_secret(secret), expected) or token is None:
        raise Unauthenticated("The token is unknown, expired or revoked.")
    now: datetime = token.checked_at  # type: ignore[attr-defined]  # annotated above
    if token.last_used_at is None or now - token.last_used_at > USE_NOTED_EVERY:
        Token.objects.filter(pk=token.pk).update(last_used_at=now)
    return token


def find_allowed_scopes(token: Token) -> frozenset[str]:
    """Return the token's scopes, limited to those of its role."""
    return frozenset(token.scopes) & SCOPES_OF[token.role]


def to_known_token(token: Token) -> KnownToken:
    return KnownToken(
        token_id=token.pk,
        name=token.name,
        owner_id=token.owner_id,
        role=token.role,
        scopes=find_allowed_scopes(token),
        services=frozenset(token.services),
        team=token.team.slug if token.team else "",
        patterns=frozenset(token.patterns),
        only_owned=token.only_owned,
    )


def validate(token: Token) -> None:
    """Raise :class:`InvalidInput`, by field, if the token must not be created like this."""
    errors: dict[str, list[str]] = {}
    owner, scopes = token.owner, token.scopes
    if not token.name or len(token.name) > MAX_NAME_LENGTH:
        errors["name"] = ["Give the token a name of 1 to 120 characters."]
    unknown = [scope for scope in scopes if scope not in ALL_SCOPES]
    beyond = sorted(set(scopes) - set(unknown) - SCOPES_OF[token.role])
    known = ", ".join(sorted(ALL_SCOPES))
    if not scopes:
        errors["scopes"] = [f"Choose at least one of: {known}."]
    elif unknown:
        errors["scopes"] = [f"Unknown: {', '.join(unknown)}. Known: {known}."]
    elif len(scopes) > 1 and (alone := EXCLUSIVE_SCOPES & set(scopes)):
        errors["scopes"] = [f"{', '.join(alone)} can't be combined with other scopes."]
    elif beyond:
        who = f"{owner.username} ({owner.role})"
        if token.team:
            who = f"{token.team.name}, like any team,"
        errors["scopes"] = [f"{who} may not use: {', '.join(beyond)}."]
    wrong = [one for one in token.services if not (SERVICE.fullmatch(one) and one.isprintable())]
    if wrong:
        errors["services"] = [
            f"Not valid as service names: {', '.join(wrong)}. Leave out spaces and slashes."
        ]
    elif len(token.services) > MAX_SERVICES:
        errors["services"] = [f"At most {MAX_SERVICES} services."]
    problems = [*filter(None, map(find_problem, token.patterns))]
    if any(len(one) > MAX_PATTERN_LENGTH for one in token.patterns):
        problems.append(f"At most {MAX_PATTERN_LENGTH} characters a pattern.")
    if len(token.patterns) > MAX_PATTERNS:
        problems.append(f"At most {MAX_PATTERNS} patterns.")
    if problems:
        errors["patterns"] = problems[:MAX_PROBLEMS]
    if token.only_owned and not (token.team or read_teams().teams_of(owner.pk)):
        errors["only_owned"] = [f"{owner.username} is in no team. Choose a team for the token."]
    if not owner.is_active and not token.replaces_id:
        errors["owner"] = [f"{owner.username} is deactivated."]
    if errors:
        raise InvalidInput(errors)
