"""Who may change what is wanted: admins, and tokens of theirs. Exclusions and acknowledgements are
any operator's."""

from controlplane.core.actors import Actor
from controlplane.core.errors import Forbidden
from controlplane.core.roles import Role

SCOPE = "slo:write"


def is_admin(actor: Actor) -> bool:
    """Whether it may change objectives and rules: by its own role, a token by its owner's, and the
    house itself."""
    return actor.may(SCOPE) and (actor.type == "system" or actor.role == Role.ADMIN)


def require_admin(actor: Actor) -> None:
    """Raise :class:`Forbidden` unless the actor may change objectives and rules."""
    if is_admin(actor):
        return
    if actor.is_person:
        raise Forbidden(
            f"Your role, {actor.role}, may not change objectives; an admin may.", scope=SCOPE
        )
    actor.require(SCOPE)
    raise Forbidden(
        "This token's owner may not change objectives; a token of an admin may.", scope=SCOPE
    )
