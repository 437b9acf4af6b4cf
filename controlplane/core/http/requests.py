"""Request properties: its id, client address, session digest, and API or page."""

import hashlib
import ipaddress
import uuid
from functools import cache

from django.conf import settings
from django.http import HttpRequest

from controlplane.core.protocol import REQUEST_ID

API_ROOT = "/api/"
MAX_HOPS = 20
"""Maximum of `X-Forwarded-For` hops read, from the nearest one; real chains are shorter."""

SIGNED_IN = "switchgear.signed_in"
"""Key in the ASGI scope for a dict of session key → user id, filled by Django."""

IPV6_PREFIX = 64
"""An IPv6 host usually has a whole /64 to choose addresses from."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def begin(request: HttpRequest) -> str:
    """Set the request's id: the caller's `X-Request-ID` if it is valid, else a new one.

    With `TRUSTED_PROXIES`, `X-Forwarded-Proto` from other peers is removed: Django would trust it.
    """
    if settings.TRUSTED_PROXIES and not _is_proxy(_address(_peer(request))):
        request.META.pop("HTTP_X_FORWARDED_PROTO", None)
    given = request.headers.get("X-Request-ID", "")
    request_id = given if REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
    setattr(request, "request_id", request_id)  # noqa: B010 - Django's class does not declare it
    return request_id


def session_digest(key: str) -> str:
    """Return the SHA-256, in hex, of a session's key: the only form of it that is stored."""
    return hashlib.sha256(key.encode()).hexdigest()


def request_id_of(request: HttpRequest) -> str:
    return str(getattr(request, "request_id", ""))


def client_ip(request: HttpRequest) -> str:
    """Return the client's address, as far as it can be trusted.

    That is the peer address of the connection, because anybody can write a header. Behind the
    proxies of `TRUSTED_PROXIES` it is the last address of `X-Forwarded-For` that isn't one of
    theirs: each proxy appends its peer, and the caller may have forged everything before that.
    """
    return client_address(_peer(request), request.META.get("HTTP_X_FORWARDED_FOR", ""))


def client_address(peer: str, forwarded_for: str) -> str:
    """Return the client's address, given the connection's `peer` and `X-Forwarded-For`."""
    address = _address(peer)
    if address is None or not _is_proxy(address):
        return peer
    for hop in forwarded_for.split(",")[: -MAX_HOPS - 1 : -1]:
        before = _address(hop.strip())
        if before is None:
            break  # Not an address, so everything left of it is untrusted too.
        address = before
        if not _is_proxy(address):
            break
    return str(address)


def _peer(request: HttpRequest) -> str:
    return str(request.META.get("REMOTE_ADDR") or "")


def _address(text: str) -> Address | None:
    """Return the address, IPv4-mapped IPv6 as IPv4; None if invalid or with a zone (`%eth0`)."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if "%" in text:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _is_proxy(address: Address | None) -> bool:
    networks = _networks(tuple(settings.TRUSTED_PROXIES))
    return address is not None and any(address in network for network in networks)


@cache
def _networks(texts: tuple[str, ...]) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(text) for text in texts)


def is_api(request: HttpRequest) -> bool:
    """Return True if errors are answered as problem+json rather than as a page."""
    return request.path.startswith(API_ROOT)


def network_of(address: str) -> str:
    """Return the key for per-client limits: an IPv4 address, or the network of an IPv6 address.

    A client can choose any address of its IPv6 network.
    """
    found = _address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((found, IPV6_PREFIX), strict=False))
    return address if found is None else str(found)
