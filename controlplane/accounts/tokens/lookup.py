"""Lookup of tokens in the memory of web processes, for reads (GET); writes query the database."""

from collections.abc import Callable
from dataclasses import dataclass

from controlplane.core.roles import Role


@dataclass(frozen=True, slots=True)
class KnownToken:
    """A usable token, as known in memory; `scopes` has only those that its `role` allows.

    The token may report as one of `services`, or as any service if that is empty. `team`,
    `patterns` and `only_owned` are those of :class:`controlplane.core.actors.Actor`.
    """

    token_id: int
    name: str
    owner_id: int
    role: Role
    scopes: frozenset[str]
    services: frozenset[str] = frozenset()
    team: str = ""
    patterns: frozenset[str] = frozenset()
    only_owned: bool = False


token_table: Callable[[str], KnownToken | None] | None = None
"""Function that returns the token of a credential, and records its use; set by web processes."""


def find_token(text: str) -> KnownToken | None:
    """Return the token with this text from memory; None if the caller must query the database."""
    return token_table(text) if token_table is not None else None
