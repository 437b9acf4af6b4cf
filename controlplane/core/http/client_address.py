"""The address of a client behind trusted proxies. Pure."""

import ipaddress
from collections.abc import Iterable
from functools import cache

MAX_HOPS = 20
"""Maximum number of `X-Forwarded-For` hops read, from the nearest one."""

IPV6_PREFIX = 64
"""Prefix length of a client's IPv6 network; a host can choose any address in it."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def client_address(peer: str, forwarded_for: str, proxies: Iterable[str]) -> str:
    """Return the address of the client, given the connection's peer and `X-Forwarded-For`.

    This is the peer, or, if that is in the networks `proxies`, the last address in
    `X-Forwarded-For` that isn't. Clients can forge the addresses before that.
    """
    trusted = _parse_networks(tuple(proxies))
    address = _parse_address(peer)
    if address is None or not _is_within(address, trusted):
        return peer
    for hop in forwarded_for.split(",")[: -MAX_HOPS - 1 : -1]:
        before = _parse_address(hop.strip())
        if before is None:
            break  # Invalid, so all hops to its left are untrusted too.
        address = before
        if not _is_within(address, trusted):
            break
    return str(address)


def is_in_networks(address: str, networks: Iterable[str]) -> bool:
    parsed = _parse_address(address)
    return parsed is not None and _is_within(parsed, _parse_networks(tuple(networks)))


def network_of(address: str) -> str:
    """Return the network that counts as one client: an IPv4 address, or an IPv6 address's /64."""
    parsed = _parse_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((parsed, IPV6_PREFIX), strict=False))
    return address if parsed is None else str(parsed)


def _parse_address(text: str) -> Address | None:
    """Return the address, IPv4-mapped IPv6 as IPv4; None if invalid or with a zone (`%eth0`)."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if "%" in text:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _is_within(address: Address, networks: tuple[Network, ...]) -> bool:
    return any(address in network for network in networks)


@cache
def _parse_networks(texts: tuple[str, ...]) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(text) for text in texts)
