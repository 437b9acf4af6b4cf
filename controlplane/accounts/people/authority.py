"""Lookup of people's and tokens' current permissions, for :mod:`controlplane.core.authority`."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import Exists

from controlplane.accounts.models.people import BrowserSession, User
from controlplane.accounts.models.tokens import Token
from controlplane.core.actors import Actor
from controlplane.core.errors import Forbidden
from controlplane.core.roles import POWERS_OF, SCOPES_OF, Power, Role

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


def holders_of(power: str, *, but: int = 0, most: int = MAX_HOLDERS) -> list[str]:
    """Return up to `most` names of active users who have `power`, without the user id `but`."""
    return _list_names((role for role, powers in POWERS_OF.items() if power in powers), but, most)


def names_with_permission(refused: Mapping[str, Any]) -> list[str]:
    """Return names of active users who have the `power` or `scope` that a refused actor lacks."""
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
        tokens = Token.objects.filter(
            pk=actor.token_id or 0, revoked_at=None, owner__is_active=True
        )
        role = tokens.values_list("owner__role", flat=True).first()
    else:
        people = User.objects.filter(pk=actor.user_id or 0, is_active=True)
        if actor.session:
            people = people.filter(Exists(BrowserSession.objects.filter(pk=actor.session)))
        role = people.values_list("role", flat=True).first()
    return Role(role) if role is not None else None
