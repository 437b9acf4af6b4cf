"""API tokens in memory, checked without I/O."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest

from controlplane.core.errors import Forbidden, Unauthenticated, Unavailable

Headers = Mapping[bytes, bytes]

UNKNOWN_DIGEST = bytes(32)


@dataclass(frozen=True, slots=True)
class Credential:
    """A usable token: SHA-256 digest of its secret, scopes, and expiry (UNIX seconds).

    If `services` is not empty, the token may report and poll for these services only. `team` is the
    slug of the team that it acts for, and `teams` are this team, or else those of its owner.
    `patterns`, if not empty, limit it to these resources, and `only_owned` to those of its teams.
    Credentials restored from disk have no owner.
    """

    token_id: int
    name: str
    digest: bytes
    scopes: frozenset[str]
    expires_at: float | None
    owner_id: int | None = None
    role: str = ""
    services: frozenset[str] = frozenset()
    team: str = ""
    teams: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()
    only_owned: bool = False

    def require_service(self, service: str) -> None:
        if self.services and service not in self.services:
            known = ", ".join(sorted(self.services))
            raise Forbidden(f"This token can't act for {service}, only for: {known}.")


TokenTable = Mapping[bytes, Credential]
"""Credentials by token prefix, without revoked tokens and those of inactive people."""


@dataclass(frozen=True, slots=True)
class CodeHash:
    """The hash of the emergency code of a person who may engage switches."""

    user_id: int
    salt: bytes
    digest: bytes


CodeTable = Mapping[str, CodeHash]
"""Emergency codes by user name."""


def not_loaded(consequence: str) -> Unavailable:
    return Unavailable(
        f"{consequence}: this process has read nothing since its start.", retry_after=1
    )


def read_token(headers: Headers) -> bytes | None:
    """Return the token in `Authorization: Bearer`, or else in `X-API-Key`; None without one."""
    kind, _, token = headers.get(b"authorization", b"").partition(b" ")
    if token and kind.lower() == b"bearer":
        return token.strip()
    return headers.get(b"x-api-key")


def authenticate(
    table: TokenTable | None,
    headers: Headers,
    *scopes: str,
    clock: Callable[[], float] = time.time,
) -> Credential:
    """Return the credential of a request's token if it has one of `scopes`.

    `clock` returns UNIX seconds. Raises :class:`Forbidden` without such a scope, and the errors of
    :func:`identify`.
    """
    credential = identify(table, headers, clock=clock)
    if credential.scopes.isdisjoint(scopes):
        raise Forbidden(f"This requires the scope {' or '.join(scopes)}.", scope=scopes[0])
    return credential


def identify(
    table: TokenTable | None, headers: Headers, *, clock: Callable[[], float] = time.time
) -> Credential:
    """Return the credential of a request's token; `clock` returns UNIX seconds.

    Takes the same time for an unknown prefix as for a wrong secret. Raises
    :class:`Unauthenticated`, or :class:`Unavailable` before tokens are loaded.
    """
    if table is None:
        raise not_loaded("Tokens can't be checked yet")
    token = read_token(headers)
    if token is None:
        raise Unauthenticated(
            "Send an API token as `Authorization: Bearer sg_<prefix>_<secret>` or `X-API-Key`."
        )
    kind, _, rest = token.partition(b"_")
    prefix, _, secret = rest.partition(b"_")
    credential = table.get(prefix)
    expected = UNKNOWN_DIGEST if credential is None else credential.digest
    matches = compare_digest(sha256(secret).digest(), expected)
    if credential is None or not matches or kind != b"sg":
        raise Unauthenticated("The token is unknown, expired or revoked.")
    if credential.expires_at is not None and clock() >= credential.expires_at:
        raise Unauthenticated("The token has expired. Create a new one.")
    return credential
