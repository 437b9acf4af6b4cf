"""Token lookup in memory, for reads in web processes; other lookups query the database."""

from collections.abc import Callable
from dataclasses import dataclass

from controlplane.core.roles import Role


@dataclass(frozen=True, slots=True)
class KnownToken:
    """A usable token; `scopes` are limited to those of its owner's role.

    The token may report as one of `services`, or as any service if that is empty.
    """

    token_id: int
    name: str
    owner_id: int
    role: Role
    scopes: frozenset[str]
    services: frozenset[str] = frozenset()


Lookup = Callable[[str], KnownToken | None]
"""Function that returns the usable token of a credential from memory, or None if unknown."""

_lookup: Lookup | None = None


def set_lookup(lookup: Lookup | None) -> None:
    """Set the function that looks up tokens in memory and records their use."""
    global _lookup
    _lookup = lookup


def find_token(text: str) -> KnownToken | None:
    """Return the token of a credential from memory; None if the database must be queried."""
    return _lookup(text) if _lookup is not None else None
