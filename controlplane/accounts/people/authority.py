"""The decision on who may do what, for :mod:`controlplane.core.authority`."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import connection
from django.db.models import Exists
from django.db.models.functions import Now

from controlplane.accounts.models.people import BrowserSession, User
from controlplane.accounts.models.tokens import Token
from controlplane.accounts.teams.grants import GRANT_LIFETIME, grant_target
from controlplane.accounts.teams.history import read_history
from controlplane.accounts.teams.state import RANKS
from controlplane.accounts.teams.storage import lock_teams, read_teams
from controlplane.core.actions import Action, Relation
from controlplane.core.actors import Actor
from controlplane.core.approvals.models import Approval
from controlplane.core.authority import AuthorityDecision
from controlplane.core.clock import db_now
from controlplane.core.errors import Forbidden
from controlplane.core.outbox import router
from controlplane.core.ownership import kind_of
from controlplane.core.roles import POWERS_OF, SCOPES_OF, Power, Role

__all__ = [
    "approvers",
    "decide",
    "find_on_call",
    "holders_of",
    "lock_teams",
    "names_with_permission",
    "read_history",
    "read_teams",
    "require_still",
    "who_may",
]

MAX_HOLDERS = 5
MAX_APPROVERS = 10


def require_still(actors: Iterable[Actor]) -> None:
    """Raise :class:`Forbidden` unless all actors still have the permissions they began with."""
    for actor in set(actors):
        if actor.role is None or actor.user_id is None:
            continue
        role = _find_current_role(actor)
        if (
            role is None
            or not actor.scopes <= SCOPES_OF[role]
            or not POWERS_OF[actor.role] <= POWERS_OF[role]
        ):
            raise Forbidden(
                "Your account, session or token just changed and no longer allows this. "
                "Nothing changed."
            )


def decide(actor: Actor, action: Action, resource: str) -> AuthorityDecision:
    """Decide whether the actor may do the action on the resource, with the teams locked.

    See :func:`controlplane.core.authority.decide`.
    """
    if actor.type == "system":
        return AuthorityDecision(True)
    teams = read_teams()
    depends = teams.requirement_for(action, kind_of(resource)).relation != Relation.ANYONE
    if depends and connection.in_atomic_block:
        lock_teams()
        teams = read_teams()
    decision = teams.decide(actor, action, resource)
    if decision.can_ask and _has_grant(actor, action, resource):
        return AuthorityDecision(True, decision.owner)
    return decision


def who_may(action: Action, resource: str, but: int = 0) -> list[str]:
    """Return up to `MAX_HOLDERS` names of active people who may do it, without the user `but`."""
    teams = read_teams()
    found = teams.who_may(action, resource, but)
    if found is None:
        least = RANKS[teams.requirement_for(action, kind_of(resource)).role]
        return _list_names((role for role, rank in RANKS.items() if rank >= least), but)
    if action == Action.EDIT:
        found += [name for name in _list_names([Role.ADMIN], but) if name not in found]
    return found[:MAX_HOLDERS]


def _has_grant(actor: Actor, action: Action, resource: str) -> bool:
    """Return True if the person's request for this action was approved in the last hour."""
    granted = Approval.objects.filter(
        kind=Approval.Kind.GRANT,
        target=grant_target(action, resource, actor.user_id or 0),
        state=Approval.State.APPROVED,
        decided_at__gt=Now() - GRANT_LIFETIME,
    )
    return granted.exists()


def find_on_call(slug: str) -> str:
    """Return the name of the person on call for a team, or "" if nobody is."""
    found = router.find_on_call(slug, db_now())
    return found.name if found else ""


def holders_of(power: str, *, but: int = 0, most: int = MAX_HOLDERS) -> list[str]:
    """Return up to `most` names of active users who have `power`, without the user id `but`."""
    return _list_names((role for role, powers in POWERS_OF.items() if power in powers), but, most)


def names_with_permission(refused: Mapping[str, Any]) -> list[str]:
    """Return names of active users who may do what a refused actor may not."""
    if "who_may" in refused:
        return list(refused["who_may"])
    if "power" in refused:
        return holders_of(refused["power"])
    if "scope" in refused:
        return _list_names(role for role, scopes in SCOPES_OF.items() if refused["scope"] in scopes)
    return []


def approvers(*, but: int) -> list[str]:
    """Return up to ten names of users who may approve a request made by the user with id `but`."""
    return holders_of(Power.APPROVE, but=but, most=MAX_APPROVERS)


def _list_names(roles: Iterable[Role], but: int = 0, most: int = MAX_HOLDERS) -> list[str]:
    people = User.objects.filter(role__in=list(roles), is_active=True).exclude(pk=but)
    return list(people.order_by("username").values_list("username", flat=True)[:most])


def _find_current_role(actor: Actor) -> Role | None:
    """Return the actor's current role, or None if their account, session or token has ended."""
    if actor.type == "token":
        tokens = Token.objects.usable(Now()).select_related("owner", "team")
        token = tokens.filter(pk=actor.token_id or 0).first()
        # A token that moved to another owner must not finish what it began for the former one.
        if token is None or actor.team != (token.team.slug if token.team else ""):
            return None
        return token.role
    people = User.objects.filter(pk=actor.user_id or 0, is_active=True)
    if actor.session:
        people = people.filter(Exists(BrowserSession.objects.filter(pk=actor.session)))
    role = people.values_list("role", flat=True).first()
    return Role(role) if role is not None else None
