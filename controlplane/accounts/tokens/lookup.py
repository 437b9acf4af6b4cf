"""Check tokens without a query, by a token table in the memory of this process.

A process without such a table (a worker, the shell, most tests) queries the database, and so does
every request that changes something.
"""

from collections.abc import Callable
from dataclasses import dataclass

from controlplane.core.roles import Role


@dataclass(frozen=True, slots=True)
class KnownToken:
    """A usable token; `scopes` are those of its own that its owner's role allows.

    `services` are the services it may report as; empty means any.
    """

    token_id: int
    name: str
    owner_id: int
    role: Role
    scopes: frozenset[str]
    services: frozenset[str] = frozenset()


Lookup = Callable[[str], KnownToken | None]
"""Return the usable token of a credential; None if it must be checked in the database."""

_lookup: Lookup | None = None


def set_lookup(lookup: Lookup | None) -> None:
    """Set the function that looks up tokens in memory; it also records their use."""
    global _lookup
    _lookup = lookup


def find(text: str) -> KnownToken | None:
    """Return the token if it is known in memory; None means that the database must be queried."""
    return _lookup(text) if _lookup is not None else None
