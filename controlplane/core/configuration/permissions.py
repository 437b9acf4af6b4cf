"""Permission to read and to load the whole configuration: admins, and tokens made for it."""

from controlplane.core import authority
from controlplane.core.actors import Actor
from controlplane.core.errors import Forbidden
from controlplane.core.roles import Role

READ, WRITE = "config:read", "config:write"


def require_admin(actor: Actor, scope: str) -> None:
    """Raise :class:`Forbidden` unless the actor may use the whole configuration.

    That are the system, a signed-in admin, and an admin's token with the scope. The scope includes
    what other tokens can't do, such as changing targets; approvals stay required. Tokens that are
    limited to some resources can only read.
    """
    if actor.type == "system":
        return
    actor.require(scope)
    if actor.role != Role.ADMIN:
        raise Forbidden("Only admins and their tokens can use the configuration.", scope=scope)
    if scope == WRITE:
        authority.require_in_limits(actor)
