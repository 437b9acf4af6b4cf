"""Who may deal with messages that were given up: whoever may act on what they tell of, and whoever
may act on dead letters, among which they are."""

from controlplane.core.actors import Actor

SCOPE = "switches:write"
SCOPES = (SCOPE, "dlq:write")


def require(actor: Actor) -> None:
    """Raise :class:`Forbidden` unless the actor has one of the scopes."""
    if not any(actor.may(scope) for scope in SCOPES):
        actor.require(SCOPE)
