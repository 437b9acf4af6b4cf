"""Permission to change the registry: admins only. Every operator may set overrides."""

from controlplane.core.actors import Actor
from controlplane.core.errors import Forbidden
from controlplane.core.roles import Role

SCOPE = "breakers:write"


def is_admin(actor: Actor) -> bool:
    """Return True if the actor is an admin, an admin's token, or the system."""
    return actor.may(SCOPE) and (actor.type == "system" or actor.role == Role.ADMIN)


def require_admin(actor: Actor) -> None:
    """Raise :class:`Forbidden` unless the actor may change the registry."""
    if is_admin(actor):
        return
    if actor.is_person:
        raise Forbidden(
            f"Only admins can change the registry; your role is {actor.role}.",
            scope=SCOPE,
        )
    actor.require(SCOPE)
    raise Forbidden(
        "Only a token owned by an admin can change the registry.",
        scope=SCOPE,
    )
