"""Current permissions of people and tokens, from an implementation that accounts registers."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from controlplane.core.actors import Actor
from controlplane.core.registry import Port


class Authority(Protocol):
    def require_still(self, actors: Iterable[Actor]) -> None: ...

    def holders_of(self, power: str) -> list[str]: ...

    def names_with_permission(self, refused: Mapping[str, Any]) -> list[str]: ...


_port = Port[Authority]("No accounts are registered; install controlplane.accounts.")
register = _port.register


def require_still(actors: Iterable[Actor]) -> None:
    """Raise Forbidden if an actor has lost permissions; the caller must hold the audit lock."""
    # Revoking permissions takes that lock, too: it commits before this check or after the caller.
    _port.get().require_still(actors)


def holders_of(power: str) -> list[str]:
    """Return the names of a few active people whose role has this power, such as `approve`."""
    return _port.get().holders_of(power)


def names_with_permission(refused: Mapping[str, Any]) -> list[str]:
    """Return the user names of people who may do what an actor was forbidden to do.

    `refused` is the `extra` of a :class:`Forbidden`, with the missing `power` or `scope`.
    """
    return _port.get().names_with_permission(refused)
