"""A guard for user-supplied URLs, against requests to internal addresses (SSRF).

A name is resolved once, all its addresses are checked, and the connection goes to a checked
address: a second lookup could give another one (DNS rebinding). TLS still verifies the name. The
caller must not follow redirects or proxies.
"""

import asyncio
import functools
import ipaddress
import re
import ssl
from collections.abc import Sequence

import httpx

from . import name_resolution
from .allowed_networks import Address, Allowance, literal
from .failures import Refused, Unresolved

MAX_URL_LENGTH = 500
MAX_ADDRESSES_TRIED = 3
LOOK_UP_SECONDS = 2.0

_A_NUMBER = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+")


def check_url(
    url: str, allowance: Allowance, *, resolver: name_resolution.Resolve = name_resolution.resolve
) -> None:
    """Raise :class:`ValueError`, with a sentence, unless `url` is allowed.

    A name that can't be resolved now is accepted: its addresses are checked at each call.
    """
    try:
        parsed = _parsed(url, allowance)
        _permitted(parsed, _found(parsed, resolver, LOOK_UP_SECONDS), allowance)
    except Refused as refused:
        said = str(refused)
        raise ValueError(f"{said[:1].upper()}{said[1:]}.") from refused
    except Unresolved:
        return


class GuardedTransport(httpx.AsyncHTTPTransport):
    """Connects to the checked address, with the requested host's name.

    Connections are pooled by address, not by name: with TLS, use it for one host only.
    """

    def __init__(
        self,
        allowance: Allowance,
        *,
        resolver: name_resolution.Resolve = name_resolution.resolve,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(verify=trust or _trust(), trust_env=False)
        self._allowance = allowance
        self._resolver = resolver

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request to an allowed address.

        Raises :class:`Refused` for a URL or an address that isn't allowed, and :class:`Unresolved`
        for a name without an address.
        """
        _check(request.url, self._allowance)
        # In a thread, so that other requests of this loop continue.
        addresses = await asyncio.to_thread(
            _found, request.url, self._resolver, name_resolution.LOOK_UP_SECONDS
        )
        _permitted(request.url, addresses, self._allowance)
        permitted = addresses[:MAX_ADDRESSES_TRIED]
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
    """Return the request to one address; Host header, TLS name and certificate stay unchanged."""
    return httpx.Request(
        request.method,
        request.url.copy_with(host=str(address)),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": _host(request.url)},
    )


def _parsed(url: str, allowance: Allowance) -> httpx.URL:
    if len(url) > MAX_URL_LENGTH:
        raise Refused(f"the URL is longer than {MAX_URL_LENGTH} characters")
    if not url.isprintable() or " " in url or "\\" in url:
        raise Refused("the URL has a character that does not belong into one")
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError) as error:
        raise Refused("that is not a valid URL") from error
    _check(parsed, allowance)
    return parsed


def _check(url: httpx.URL, allowance: Allowance) -> None:
    """Raise :class:`Refused` for a URL that can be rejected without a DNS lookup."""
    host = _host(url)
    if url.scheme not in {"https", "http"} or not host:
        raise Refused("the URL must begin with https:// and name a host")
    if url.port is not None and not 0 < url.port < 65536:
        raise Refused("the URL's port must be between 1 and 65535")
    if url.userinfo:
        raise Refused("the URL must not hold a user or a password")
    if url.scheme == "http" and not allowance.networks:
        raise Refused("the URL must begin with https://")
    if "%" in host:
        raise Refused("the URL must not name a network interface")
    if literal(host) is None and _A_NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]):
        raise Refused("write the address as four numbers with dots, without leading zeros")


def _found(url: httpx.URL, resolver: name_resolution.Resolve, seconds: float) -> list[Address]:
    host = _host(url)
    written = literal(host)
    if written is not None:
        return [written]
    texts = name_resolution.look_up(
        host, url.port or _port(url), resolver=resolver, seconds=seconds
    )
    return [ipaddress.ip_address(text) for text in texts]


def _permitted(url: httpx.URL, addresses: Sequence[Address], allowance: Allowance) -> None:
    """Raise :class:`Refused` unless every one of the addresses may be called."""
    allowance.check(_host(url), addresses)
    if url.scheme == "http" and not all(allowance.names(address) for address in addresses):
        raise Refused(
            f"the URL must begin with https://, outside of the networks in {allowance.variable}"
        )


def _host(url: httpx.URL) -> str:
    """Return the host in ASCII, as DNS and TLS use it."""
    return url.raw_host.decode("ascii").lower()


def _port(url: httpx.URL) -> int:
    return 443 if url.scheme == "https" else 80


@functools.cache
def _trust() -> ssl.SSLContext:
    return httpx.create_ssl_context()
