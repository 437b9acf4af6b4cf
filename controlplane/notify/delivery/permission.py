"""Permission to retry and discard failed messages.

Granted by the scope for switches, which messages report on, or the one for dead letters.
"""

from controlplane.core.actors import Actor

SCOPE = "switches:write"
SCOPES = (SCOPE, "dlq:write")


def require(actor: Actor) -> None:
    """Raise :class:`Forbidden` unless the actor has one of the scopes."""
    if not any(actor.may(scope) for scope in SCOPES):
        actor.require(SCOPE)
