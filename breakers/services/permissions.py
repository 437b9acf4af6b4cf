"""Permission to change the registry: admins and their tokens. Any operator may set overrides."""

from controlplane.core.actors import Actor
from controlplane.core.errors import Forbidden
from controlplane.core.roles import Role

SCOPE = "breakers:write"


def is_admin(actor: Actor) -> bool:
    """Return True for admins, tokens of admins, and the system."""
    return actor.may(SCOPE) and (actor.type == "system" or actor.role == Role.ADMIN)


def require_admin(actor: Actor) -> None:
    """Raise :class:`Forbidden` unless the actor may change what is registered."""
    if is_admin(actor):
        return
    if actor.is_person:
        raise Forbidden(
            f"Your role, {actor.role}, may not change what is registered; an admin may.",
            scope=SCOPE,
        )
    actor.require(SCOPE)
    raise Forbidden(
        "This token's owner may not change what is registered; a token of an admin may.",
        scope=SCOPE,
    )
