"""Deactivating a person: a preview of what stops, and handing over their tokens."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import F

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
    """Notifications that depend on a person.

    `duties` are the rotations, steps and routes that name the person, in words. `addressed` are
    the names of targets with the person's own address that aren't the person's: they stay active.
    """

    duties: list[str]
    addressed: list[str]


@dataclass(frozen=True)
class Leaving(Duties):
    """Everything that stops or loses its owner when a person leaves.

    Lists hold at most :data:`SHOWN`; `token_count` and `session_count` count all.
    """

    tokens: list[Token]
    token_count: int
    session_count: int
    approvals: list[Approval]


_sources: list[Callable[[User, int], Duties]] = []


def register_duties(source: Callable[[User, int], Duties]) -> None:
    """Register a function that returns the notifications depending on a person."""
    _sources.append(source)


def preview(user: User, now: datetime) -> Leaving:
    """Return what would stop or lose its owner if this person were deactivated at `now`."""
    theirs = Token.objects.usable(now).filter(owner=user)
    asked = Approval.objects.filter(requester=user, state=Approval.State.PENDING)
    found = [source(user, SHOWN) for source in _sources]
    return Leaving(
        tokens=list(theirs.order_by(F("last_used_at").desc(nulls_last=True), "-id")[:SHOWN]),
        token_count=theirs.count(),
        session_count=user.browser_sessions.open(now).count(),
        approvals=list(asked.order_by("id")[:SHOWN]),
        duties=[words for one in found for words in one.duties],
        addressed=[name for one in found for name in one.addressed],
    )


def heirs(user: User) -> list[User]:
    """Return at most 200 active people whose roles cover all scopes of this person's tokens."""
    scopes = {scope for token in user.tokens.filter(revoked_at=None) for scope in token.scopes}
    roles = [role for role in Role if scopes <= SCOPES_OF[role]]
    others = User.objects.filter(is_active=True, role__in=roles).exclude(pk=user.pk)
    return list(others.order_by("username")[:200])


@transaction.atomic
def deactivate(*, user: User, heir: User | None, actor: Actor, now: datetime) -> User:
    """End somebody's sessions and tokens, except the tokens that `heir` takes over.

    Raises :class:`InvalidInput` if the heir lacks permission, :class:`Conflict` for the last admin.
    """
    if heir is not None:
        if heir.pk == user.pk:
            raise InvalidInput({"heir": ["Choose somebody else to take over the tokens."]})
        services.locked(user, heir)
        # All rows before the first of the trail: who revokes one of them waits, instead of failing.
        theirs = Token.objects.usable(now).filter(owner=user).order_by("pk")
        held = list(theirs.select_for_update(of=("self",)))
        sessions.lock(user)
        for token in held:
            tokens.hand_over(token=token, owner=heir, actor=actor, now=now)
    return services.change_user(user=user, actor=actor, now=now, is_active=False)
