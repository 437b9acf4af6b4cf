"""Permission to change objectives and threshold rules: admins and their tokens have it."""

from controlplane.core.actors import Actor
from controlplane.core.errors import Forbidden
from controlplane.core.roles import Role

SCOPE = "slo:write"


def is_admin(actor: Actor) -> bool:
    """Return True if the actor may change objectives and rules.

    A person needs the scope `slo:write` and the role admin; a token's owner needs that role.
    """
    return actor.may(SCOPE) and (actor.type == "system" or actor.role == Role.ADMIN)


def require_admin(actor: Actor) -> None:
    """Raise :class:`Forbidden` unless the actor may change objectives and rules."""
    if is_admin(actor):
        return
    if actor.is_person:
        raise Forbidden(
            f"Only admins can change objectives; your role is {actor.role}.", scope=SCOPE
        )
    actor.require(SCOPE)
    raise Forbidden("Only a token owned by an admin can change objectives.", scope=SCOPE)
