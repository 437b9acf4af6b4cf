"""API tokens, held in memory and checked without any I/O."""

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
    """A usable token: SHA-256 of its secret, its scopes, and its expiry (UNIX seconds).

    `services` limits the services it may report and poll as. A table loaded from disk has no owner.
    """

    token_id: int
    name: str
    digest: bytes
    scopes: frozenset[str]
    expires_at: float | None
    owner_id: int | None = None
    role: str = ""
    services: frozenset[str] = frozenset()

    def require_service(self, service: str) -> None:
        """Raise :class:`Forbidden` if the token is limited to other services."""
        if self.services and service not in self.services:
            known = ", ".join(sorted(self.services))
            raise Forbidden(f"This token may not speak for {service}, only for: {known}.")


TokenTable = Mapping[bytes, Credential]
"""Credentials by token prefix, without revoked ones and those of inactive people."""


def read_token(headers: Headers) -> bytes | None:
    """Return the request's token, if any: `Authorization: Bearer` before `X-API-Key`."""
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

    `clock()` is UNIX time. Raises :class:`Forbidden` without a scope, and the errors of
    :func:`identify`.
    """
    found = identify(table, headers, clock=clock)
    if found.scopes.isdisjoint(scopes):
        raise Forbidden(f"This needs the scope {' or '.join(scopes)}.", scope=scopes[0])
    return found


def identify(
    table: TokenTable | None, headers: Headers, *, clock: Callable[[], float] = time.time
) -> Credential:
    """Return the credential of a request's token, whatever its scopes; `clock()` is UNIX time.

    Takes the same time for an unknown prefix as for a wrong secret. Raises
    :class:`Unauthenticated`, or :class:`Unavailable` without a table.
    """
    if table is None:
        raise Unavailable(
            "Tokens can't be checked yet: the database has not answered since the start.",
            retry_after=1,
        )
    token = read_token(headers)
    if token is None:
        raise Unauthenticated(
            "Send an API token as `Authorization: Bearer sg_<prefix>_<secret>` or `X-API-Key`."
        )
    kind, _, rest = token.partition(b"_")
    prefix, _, secret = rest.partition(b"_")
    found = table.get(prefix)
    expected = UNKNOWN_DIGEST if found is None else found.digest
    matches = compare_digest(sha256(secret).digest(), expected)
    if found is None or not matches or kind != b"sg":
        raise Unauthenticated("The token is unknown, expired or revoked.")
    if found.expires_at is not None and clock() >= found.expires_at:
        raise Unauthenticated("The token has expired; make a new one.")
    return found
