"""The guard in front of URLs that people gave: they may not reach into the house.

A name is looked up once, every address it has is checked, and the connection goes to one of those
checked addresses: a second look-up could be answered differently (DNS rebinding). TLS still asks
for the name. Redirects and proxies are not followed; see :mod:`outbound`.
"""

import functools
import ipaddress
import re
import ssl
from collections.abc import Sequence

import httpx
from django.conf import settings

from controlplane.core.outbox.transports import names
from controlplane.core.outbox.transports.failures import PermanentFailure, TransientFailure

LONGEST_URL = 500
MOST_ADDRESSES_TRIED = 3
LOOK_UP_SECONDS = 2.0

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# Beyond what `is_global` refuses, whose answer differs between versions of Python. After IANA's
# special-purpose registries (RFC 6890 and its updates).
NOT_PUBLIC: tuple[Network, ...] = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",
        "100.64.0.0/10",  # carriers' own
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure's metadata, although it looks public
        "169.254.0.0/16",  # link-local, and metadata of other clouds
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",  # multicast, reserved, broadcast
        "2001::/23",  # Teredo and other protocols
        "2001:db8::/32",
        "2002::/16",  # 6to4: an IPv4 address inside
        "3fff::/20",
    )
)
GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")  # Leaves out mapped, NAT64, local, multicast.
_A_NUMBER = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+")


def check_url(url: str, *, resolver: names.Resolve = names.resolve) -> None:
    """Raise :class:`ValueError`, with a sentence, unless a webhook may go to `url`.

    A name that can't be looked up now is let through: what it leads to is checked at each call.
    """
    try:
        parsed = _parsed(url)
        addresses = _found(parsed, resolver, LOOK_UP_SECONDS)
        _permitted(parsed, addresses)
    except PermanentFailure as failure:
        raise ValueError(f"{failure.reason[:1].upper()}{failure.reason[1:]}.") from failure
    except TransientFailure:
        return


class GuardedTransport(httpx.AsyncHTTPTransport):
    """Connects to the address that was checked, in the name of the host that was asked for."""

    def __init__(
        self, *, resolver: names.Resolve = names.resolve, trust: ssl.SSLContext | None = None
    ) -> None:
        super().__init__(verify=trust or _trust(), trust_env=False)
        self._resolver = resolver

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Raises a `DeliveryFailure` for a URL or an address that is refused."""
        _check(request.url)
        # Blocks this loop, which serves nothing but this request.
        addresses = _found(request.url, self._resolver, names.LOOK_UP_SECONDS)
        permitted = _permitted(request.url, addresses)[:MOST_ADDRESSES_TRIED]
        for address in permitted[:-1]:
            try:
                return await self._call(request, address)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue  # Nothing was sent yet.
        return await self._call(request, permitted[-1])

    async def _call(self, request: httpx.Request, address: Address) -> httpx.Response:
        response = await super().handle_async_request(_addressed(request, address))
        # Never unpacked: a small packed answer may be a huge one.
        response.headers.pop("content-encoding", None)
        return response


def _addressed(request: httpx.Request, address: Address) -> httpx.Request:
    """The request to one address; its Host header, TLS name and certificate stay the host's."""
    return httpx.Request(
        request.method,
        request.url.copy_with(host=str(address)),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": _host(request.url)},
    )


def _parsed(url: str) -> httpx.URL:
    if len(url) > LONGEST_URL:
        raise PermanentFailure(f"the URL is longer than {LONGEST_URL} characters")
    if not url.isprintable() or " " in url or "\\" in url:
        raise PermanentFailure("the URL has a character that does not belong into one")
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError) as error:
        raise PermanentFailure("that is not a valid URL") from error
    _check(parsed)
    return parsed


def _check(url: httpx.URL) -> None:
    """What can be said without looking anything up."""
    host = _host(url)
    if url.scheme not in {"https", "http"} or not host:
        raise PermanentFailure("the URL must begin with https:// and name a host")
    if url.port is not None and not 0 < url.port < 65536:
        raise PermanentFailure("the URL's port must be between 1 and 65535")
    if url.userinfo:
        raise PermanentFailure("the URL must not hold a user or a password")
    if url.scheme == "http" and not settings.WEBHOOK_ALLOW:
        raise PermanentFailure("the URL must begin with https://")
    if "%" in host:
        raise PermanentFailure("the URL must not name a network interface")
    if _literal(host) is None and _A_NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]):
        raise PermanentFailure("write the address as four numbers with dots, without leading zeros")


def _found(url: httpx.URL, resolver: names.Resolve, seconds: float) -> list[Address]:
    host = _host(url)
    literal = _literal(host)
    if literal is not None:
        return [literal]
    texts = names.look_up(host, url.port or _port(url), resolver=resolver, seconds=seconds)
    return [ipaddress.ip_address(text) for text in texts]


def _permitted(url: httpx.URL, addresses: Sequence[Address]) -> list[Address]:
    """The addresses, if every one of them may be called; else the failure that says why not."""
    allowed = all(_is_ours(address) for address in addresses)
    if not all(_is_ours(address) or is_public(address) for address in addresses):
        raise PermanentFailure(
            f"{_host(url)} is not on the public internet;"
            " WEBHOOK_ALLOW can name networks of your own"
        )
    if url.scheme == "http" and not allowed:
        raise PermanentFailure(
            "the URL must begin with https://, outside of the networks in WEBHOOK_ALLOW"
        )
    return list(addresses)


def is_public(address: Address) -> bool:
    """Whether it is one machine of the public internet, and no other address in disguise."""
    if isinstance(address, ipaddress.IPv6Address) and address not in GLOBAL_V6:
        return False
    return address.is_global and not any(address in network for network in NOT_PUBLIC)


def _is_ours(address: Address) -> bool:
    """Whether an operator has allowed it; a mapped IPv4 address counts as what it leads to."""
    mapped = getattr(address, "ipv4_mapped", None) or address
    return any(mapped in ipaddress.ip_network(network) for network in settings.WEBHOOK_ALLOW)


def _host(url: httpx.URL) -> str:
    """In ASCII, as DNS and TLS know it."""
    return url.raw_host.decode("ascii").lower()


def _port(url: httpx.URL) -> int:
    return 443 if url.scheme == "https" else 80


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


@functools.cache
def _trust() -> ssl.SSLContext:
    return httpx.create_ssl_context()
