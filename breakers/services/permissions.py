"""Permissions to change the registry and to override breakers."""

from breakers.models import Dependency, Override
from controlplane.core import authority
from controlplane.core.actions import Action
from controlplane.core.actors import Actor

SCOPE = "breakers:write"
SUSPENDING_MODES = (Override.Mode.FORCED_CLOSED, Override.Mode.DISABLED, Override.Mode.METRICS_ONLY)
"""Modes in which breakers let every call through."""


def require_edit(actor: Actor, resource: str) -> None:
    """Raise :class:`Forbidden` unless the actor may register a dependency or service, or edit it.

    `resource` without a name, such as `dependency:`, stands for any that the actor may register.
    """
    authority.require_edit(actor, resource, scope=SCOPE, called="the registry")


def get_set_action(mode: str) -> Action:
    """Return the action as which forcing a mode counts."""
    return Action.ENGAGE if mode == Override.Mode.FORCED_OPEN else Action.OVERRIDE


def get_end_action(mode: str) -> Action:
    """Return the action as which ending an override of this mode counts.

    Ending a mode that lets every call through stops something; ending another starts it again.
    """
    return Action.ENGAGE if mode in SUSPENDING_MODES else Action.OVERRIDE


def require_set(actor: Actor, mode: str, dependency: Dependency) -> None:
    """Raise :class:`Forbidden` unless the actor may force this mode upon a dependency."""
    authority.require(actor, get_set_action(mode), dependency.resource)


def require_end(actor: Actor, override: Override, dependency: Dependency) -> None:
    """Raise :class:`Forbidden` unless the actor may end a dependency's override."""
    authority.require(actor, get_end_action(override.mode), dependency.resource)
