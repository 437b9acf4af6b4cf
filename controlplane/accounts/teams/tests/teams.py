"""Teams for tests of screens and of the API."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from controlplane.accounts.models import Membership, Ownership, Team
from controlplane.accounts.models.people import User
from controlplane.accounts.tokens import services as tokens
from controlplane.core.actors import Actor, system_actor
from controlplane.core.clock import db_now
from controlplane.core.roles import Role


def create_team(
    slug: str,
    *patterns: str,
    members: Iterable[User] = (),
    leads: Iterable[User] = (),
    parent: Team | None = None,
) -> Team:
    """Create a team that owns the resources of these patterns; its name is the capitalized slug."""
    team = Team.objects.create(
        slug=slug, name=slug.capitalize(), parent=parent, created_at=db_now()
    )
    for pattern in patterns:
        Ownership.objects.create(pattern=pattern, team=team)
    for role, people in (("member", members), ("lead", leads)):
        for user in people:
            Membership.objects.create(team=team, user=user, role=role)
    return team


def create_token_actor(owner: User, **limits: Any) -> Actor:
    """Return the actor of a new token with all scopes of its owner; `limits` are fields of it."""
    scopes = owner.as_actor().scopes - {"scim"}
    token, _ = tokens.create_token(
        name="ci", owner=owner, scopes=scopes, actor=system_actor("test"), now=db_now()
    )
    actor = Actor(
        type="token",
        name=token.name,
        user_id=owner.pk,
        token_id=token.pk,
        role=Role(owner.role),
        scopes=scopes,
    )
    return replace(actor, **limits)
