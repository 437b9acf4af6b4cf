"""Deactivation of people: preview of its consequences, and transfer of their tokens."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import F, QuerySet

from controlplane.accounts.models.people import User
from controlplane.accounts.models.tokens import Token
from controlplane.accounts.tokens import services as tokens
from controlplane.core.actors import Actor
from controlplane.core.approvals.models import Approval
from controlplane.core.errors import InvalidInput
from controlplane.core.roles import SCOPES_OF, Role

from . import services, sessions

SHOWN = 50


@dataclass(frozen=True)
class Duties:
    """Notification settings that depend on a person.

    `duties` describe rotations, escalation steps and routes that lead to the person. `addressed`
    are names of other notification targets with the person's address, which keep working.
    """

    duties: list[str]
    addressed: list[str]


@dataclass(frozen=True)
class DeactivationPreview(Duties):
    """The effects of a deactivation: up to :data:`SHOWN` items of each kind, and counts of all."""

    tokens: list[Token]
    token_count: int
    session_count: int
    approvals: list[Approval]


_sources: list[Callable[[User, int], Duties]] = []


def register_duties(source: Callable[[User, int], Duties]) -> None:
    """Register a function that returns the notification settings that depend on a person."""
    _sources.append(source)


def preview_deactivation(user: User, now: datetime) -> DeactivationPreview:
    theirs = _filter_own(user, now)
    requested = Approval.objects.filter(requester=user, state=Approval.State.PENDING)
    found = [source(user, SHOWN) for source in _sources]
    return DeactivationPreview(
        tokens=list(theirs.order_by(F("last_used_at").desc(nulls_last=True), "-id")[:SHOWN]),
        token_count=theirs.count(),
        session_count=user.browser_sessions.open(now).count(),
        approvals=list(requested.order_by("id")[:SHOWN]),
        duties=[duty for duties in found for duty in duties.duties],
        addressed=[name for duties in found for name in duties.addressed],
    )


def _filter_own(user: User, now: datetime) -> QuerySet[Token]:
    """Return the usable tokens that end with the person's account; those of teams don't."""
    return Token.objects.usable(now).filter(owner=user, team=None)


def find_heirs(user: User) -> list[User]:
    """Return up to 200 active people whose role allows them to own this person's tokens."""
    own = user.tokens.filter(revoked_at=None, team=None)
    scopes = {scope for token in own for scope in token.scopes}
    roles = [role for role in Role if scopes <= SCOPES_OF[role]]
    others = User.objects.filter(is_active=True, role__in=roles).exclude(pk=user.pk)
    return list(others.order_by("username")[:200])


@transaction.atomic
def deactivate_user(*, user: User, heir: User | None, actor: Actor, now: datetime) -> User:
    """Deactivate a person, end their sessions, and transfer their usable tokens to `heir`, if any.

    Raises :class:`InvalidInput` if `heir` is the same person, is deactivated, or has a role that
    lacks a token's scope, and :class:`Conflict` for the last admin.
    """
    if heir is not None:
        if heir.pk == user.pk:
            raise InvalidInput({"heir": ["Choose another person to take over the tokens."]})
        services.lock_user(user, heir)
        # Lock all tokens before the audit trail, so that concurrent revocations wait, not deadlock.
        theirs = _filter_own(user, now).order_by("pk")
        locked_tokens = list(theirs.select_for_update(of=("self",)))
        sessions.lock_sessions(user)
        for token in locked_tokens:
            tokens.hand_over_token(token=token, owner=heir, actor=actor, now=now)
    return services.change_user(user=user, actor=actor, now=now, is_active=False)
