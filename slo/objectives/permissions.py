"""Permission to change objectives and threshold rules."""

from controlplane.core import authority
from controlplane.core.actors import Actor
from controlplane.core.errors import Forbidden
from controlplane.core.roles import Role
from slo.models.objective import slo_resource

SCOPE = "slo:write"


def require_edit(actor: Actor, name: str) -> None:
    """Raise :class:`Forbidden` unless the actor may create, change or remove an SLO.

    Without a name, it is any that the actor may create.
    """
    resource = slo_resource(name)
    authority.require_edit(actor, resource, scope=SCOPE, called="objectives")


def is_admin(actor: Actor) -> bool:
    """Return True if the actor may change threshold rules, which no team owns.

    A person needs the scope `slo:write` and the role admin; a token's owner needs that role.
    """
    return actor.may(SCOPE) and (actor.type == "system" or actor.role == Role.ADMIN)


def require_admin(actor: Actor) -> None:
    """Raise :class:`Forbidden` unless the actor may change threshold rules."""
    if is_admin(actor):
        authority.require_in_limits(actor)
        return
    if actor.is_person:
        raise Forbidden(
            f"Only admins can change threshold rules; your role is {actor.role}.", scope=SCOPE
        )
    actor.require(SCOPE)
    raise Forbidden("Only a token owned by an admin can change threshold rules.", scope=SCOPE)
