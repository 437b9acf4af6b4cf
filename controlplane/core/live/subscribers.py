"""Types and checks for the clients of live updates: sessions, tokens and page origins. Pure."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol
from urllib.parse import urlsplit

from django.http import parse_cookie

Headers = Mapping[bytes, bytes]
DEFAULT_PORTS = {"http": 80, "https": 443}
_SESSION_KEY = re.compile(r"[a-z0-9]{32}")


@dataclass(frozen=True)
class Session:
    """A browser session of a person, with the values that it had when the socket was opened."""

    key: str = field(repr=False)
    user_id: int
    role: str
    data: str = field(repr=False)
    password: str = field(repr=False)


@dataclass(frozen=True)
class Subscriber:
    """The client of a socket: a program with a token in `headers`, or a person with a `session`.

    All sockets of a person or token share the `name`.
    """

    name: str
    topics: frozenset[str]
    session: Session | None = None
    headers: Headers = field(default_factory=dict, repr=False)


class ProcessState(Protocol):
    """The interface by which the hub of live updates reads the state of the rest of its process.

    The methods make no database queries unless noted.
    """

    def database_reachable(self) -> bool: ...

    def wall(self) -> datetime:
        """Return the current time of the database's clock."""

    def degradation(self, *, is_subscribed: bool) -> Mapping[str, Any]:
        """Return the degradation, in which Redis counts as down unless `is_subscribed`."""

    def authenticate_token(self, headers: Headers) -> Subscriber:
        """Return the subscriber of the token in these headers; raise if the token is invalid."""

    def is_token_valid(self, subscriber: Subscriber) -> bool:
        """Return True if the subscriber's token is still valid."""

    def find_session(self, key: str) -> Subscriber:
        """Return the subscriber of a session key, from the database.

        Raises :class:`Unauthenticated` if the session has ended, and :class:`Forbidden` if the
        person must set up a second factor first.
        """

    def find_ended_sessions(self, sessions: Collection[Session]) -> set[Session]:
        """Return those of the sessions that have ended, by one database query."""


def carries_token(headers: Headers) -> bool:
    """Return True if the headers have a token: `Authorization: Bearer` or `X-API-Key`."""
    kind, _, token = headers.get(b"authorization", b"").partition(b" ")
    return (kind.lower() == b"bearer" and token.strip() != b"") or b"x-api-key" in headers


def session_key_of(headers: Headers, cookie_name: str) -> str | None:
    """Return the session key in the cookies; None if it is missing or malformed."""
    cookies = parse_cookie(headers.get(b"cookie", b"").decode("latin-1"))
    key = cookies.get(cookie_name, "")
    return key if _SESSION_KEY.fullmatch(key) else None


def is_own_page(headers: Headers, trusted: Collection[str], *, https_only: bool) -> bool:
    """Return True if a socket was opened by a page of this console, judging by its `Origin`.

    That is the requested host or one of `trusted`: `https://a.example`, or `https://.a.example` for
    all its subdomains. Browsers send cookies with sockets opened by any site's page, so the origin
    must be checked.
    """
    origin = _split_origin(headers.get(b"origin", b"").decode("latin-1"))
    if origin is None:
        return False
    scheme, host, port = origin
    requested = _split_origin(f"{scheme}://{headers.get(b'host', b'').decode('latin-1')}")
    if requested == origin and (scheme == "https" or not https_only):
        return True
    patterns = (_split_origin(each.replace("*.", ".")) for each in trusted)
    return any(
        pattern[::2] == (scheme, port)
        and (host == pattern[1] or (pattern[1].startswith(".") and host.endswith(pattern[1])))
        for pattern in filter(None, patterns)
    )


def _split_origin(origin: str) -> tuple[str, str, int] | None:
    try:
        parts = urlsplit(origin)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
        return None
    return parts.scheme, parts.hostname, port or DEFAULT_PORTS[parts.scheme]
