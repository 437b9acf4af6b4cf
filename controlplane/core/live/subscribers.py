"""Subscribers of live updates: their credentials, and the origin check of their page. Pure."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from django.http import parse_cookie

Headers = Mapping[bytes, bytes]
DEFAULT_PORTS = {"http": 80, "https": 443}
_SESSION_KEY = re.compile(r"[a-z0-9]{32}")


@dataclass(frozen=True)
class Session:
    """A person's session, with the values that it had when the person was authenticated."""

    key: str = field(repr=False)
    user_id: int
    role: str
    data: str = field(repr=False)
    password: str = field(repr=False)


@dataclass(frozen=True)
class Subscriber:
    """The client of a socket; all sockets of a person or token share its `name`.

    A program has `headers` with its token; a person has a `session`.
    """

    name: str
    topics: frozenset[str]
    session: Session | None = None
    headers: Headers = field(default_factory=dict, repr=False)


def headers_of(scope: Mapping[str, Any]) -> dict[bytes, bytes]:
    return dict(scope["headers"])


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
    """Return True if `Origin` is the requested host or one of `trusted`.

    `trusted` entries are `https://a.example`, or `https://.a.example` for all its subdomains.
    Browsers send cookies with sockets opened by any site's page, so the origin must be checked.
    """
    origin = _split_origin(headers.get(b"origin", b"").decode("latin-1"))
    if origin is None:
        return False
    scheme, host, port = origin
    requested = _split_origin(f"{scheme}://{headers.get(b'host', b'').decode('latin-1')}")
    if requested == origin and (scheme == "https" or not https_only):
        return True
    return any(
        _matches_origin(_split_origin(each.replace("*.", ".")), scheme, host, port)
        for each in trusted
    )


def _matches_origin(
    pattern: tuple[str, str, int] | None, scheme: str, host: str, port: int
) -> bool:
    if pattern is None or pattern[::2] != (scheme, port):
        return False
    pattern_host = pattern[1]
    return host == pattern_host or (pattern_host.startswith(".") and host.endswith(pattern_host))


def _split_origin(origin: str) -> tuple[str, str, int] | None:
    try:
        parts = urlsplit(origin)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
        return None
    return parts.scheme, parts.hostname, port or DEFAULT_PORTS[parts.scheme]
