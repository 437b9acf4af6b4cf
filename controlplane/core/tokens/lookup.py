"""Tokens checked without a query, by whoever holds them in memory in this process.

A process without such a holder (a worker, the shell, most tests) asks the database, and so does
every request that changes something.
"""

from collections.abc import Callable
from dataclasses import dataclass

from controlplane.core.people.roles import Role


@dataclass(frozen=True, slots=True)
class KnownToken:
    """A usable token; `scopes` are its own as far as its owner's role allows them.

    `services` are those that it may report as; empty means any.
    """

    token_id: int
    name: str
    owner_id: int
    role: Role
    scopes: frozenset[str]
    services: frozenset[str] = frozenset()


Lookup = Callable[[str], KnownToken | None]
"""The usable token behind a credential; None if the holder can't vouch for it just now."""

_lookup: Lookup | None = None


def set_lookup(lookup: Lookup | None) -> None:
    """Name the holder of tokens in this process; it records their use as well."""
    global _lookup
    _lookup = lookup


def find(text: str) -> KnownToken | None:
    """The token if it is known in memory; None says nothing, the database has to be asked."""
    return _lookup(text) if _lookup is not None else None
