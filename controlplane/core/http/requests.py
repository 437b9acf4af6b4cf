"""Properties of a request: request id, client address, session digest, API or page."""

import hashlib
import ipaddress
import uuid
from functools import cache

from django.conf import settings
from django.http import HttpRequest

from controlplane.core.protocol import REQUEST_ID

API_ROOT = "/api/"
MAX_HOPS = 20
"""Maximum number of `X-Forwarded-For` hops read, from the nearest one."""

SIGNED_IN = "switchgear.signed_in"
"""Key in the ASGI scope of a dict from session key to user id, filled by Django."""

IPV6_PREFIX = 64
"""Prefix length of a client's IPv6 network; a host can choose any address in it."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def set_request_id(request: HttpRequest) -> str:
    """Set the request's id: the `X-Request-ID` header if it is valid, else a new id.

    If `TRUSTED_PROXIES` is set and the peer is none of them, this also removes the header
    `X-Forwarded-Proto`, because Django would trust it.
    """
    if settings.TRUSTED_PROXIES and not _is_proxy(_parse_address(_get_peer(request))):
        request.META.pop("HTTP_X_FORWARDED_PROTO", None)
    sent_id = request.headers.get("X-Request-ID", "")
    request_id = sent_id if REQUEST_ID.fullmatch(sent_id) else uuid.uuid4().hex
    setattr(request, "request_id", request_id)  # noqa: B010 - Django's class does not declare it
    return request_id


def session_digest(key: str) -> str:
    """Return the SHA-256, in hex, of a session key; only this digest is stored."""
    return hashlib.sha256(key.encode()).hexdigest()


def request_id_of(request: HttpRequest) -> str:
    return str(getattr(request, "request_id", ""))


def client_ip(request: HttpRequest) -> str:
    """Return the most trustworthy address of the client.

    This is the address of the connection's peer. If the peer is in `TRUSTED_PROXIES`, it is the
    last address in `X-Forwarded-For` that isn't a trusted proxy. Clients can forge the addresses
    before that.
    """
    return client_address(_get_peer(request), request.META.get("HTTP_X_FORWARDED_FOR", ""))


def client_address(peer: str, forwarded_for: str) -> str:
    """Return the address of the client, given the connection's peer and `X-Forwarded-For`."""
    address = _parse_address(peer)
    if address is None or not _is_proxy(address):
        return peer
    for hop in forwarded_for.split(",")[: -MAX_HOPS - 1 : -1]:
        before = _parse_address(hop.strip())
        if before is None:
            break  # Invalid, so all hops to its left are untrusted too.
        address = before
        if not _is_proxy(address):
            break
    return str(address)


def _get_peer(request: HttpRequest) -> str:
    return str(request.META.get("REMOTE_ADDR") or "")


def _parse_address(text: str) -> Address | None:
    """Return the address, IPv4-mapped IPv6 as IPv4; None if invalid or with a zone (`%eth0`)."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if "%" in text:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _is_proxy(address: Address | None) -> bool:
    networks = _parse_networks(tuple(settings.TRUSTED_PROXIES))
    return address is not None and any(address in network for network in networks)


@cache
def _parse_networks(texts: tuple[str, ...]) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(text) for text in texts)


def is_api(request: HttpRequest) -> bool:
    """Return True if the request's errors are problem+json rather than pages."""
    return request.path.startswith(API_ROOT)


def network_of(address: str) -> str:
    """Return the network that counts as one client: an IPv4 address, or an IPv6 address's /64."""
    parsed = _parse_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((parsed, IPV6_PREFIX), strict=False))
    return address if parsed is None else str(parsed)
