"""Guard for user-supplied URLs against requests to internal addresses (SSRF).

A name is resolved once, all its addresses are checked, and the connection goes to a checked
address, because a second lookup could return another one (DNS rebinding). TLS still verifies the
name. The caller must not follow redirects or use proxies.
"""

import asyncio
import functools
import ipaddress
import re
import ssl
from collections.abc import Sequence

import httpx

from . import name_resolution
from .allowed_networks import Address, Allowance, UrlRefused, parse_ip
from .name_resolution import Unresolved

MAX_URL_LENGTH = 500
MAX_ADDRESSES_TRIED = 3
LOOKUP_SECONDS = 2.0

_NUMBER = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+")


def check_url(
    url: str, allowance: Allowance, *, resolver: name_resolution.Resolve = name_resolution.resolve
) -> None:
    """Raise :class:`ValueError`, with a sentence for users, unless calls to `url` are allowed.

    A name that can't be resolved now is accepted: its addresses are checked at each call.
    """
    try:
        parsed = _parse_url(url, allowance)
        _check_addresses(parsed, _resolve(parsed, resolver, LOOKUP_SECONDS), allowance)
    except UrlRefused as refused:
        message = str(refused)
        raise ValueError(f"{message[:1].upper()}{message[1:]}.") from refused
    except Unresolved:
        return


class GuardedTransport(httpx.AsyncHTTPTransport):
    """HTTP transport that connects only to allowed addresses.

    Connections are pooled by address, not by name: with TLS, use one transport per host.
    """

    def __init__(
        self,
        allowance: Allowance,
        *,
        resolver: name_resolution.Resolve = name_resolution.resolve,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(verify=trust or _default_tls_context(), trust_env=False)
        self._allowance = allowance
        self._resolver = resolver

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request to an allowed address of its host.

        Raises :class:`UrlRefused` for a URL or an address that isn't allowed, and
        :class:`Unresolved` for a name without an address.
        """
        _check(request.url, self._allowance)
        # In a thread, so that other requests of this loop continue.
        addresses = await asyncio.to_thread(
            _resolve, request.url, self._resolver, name_resolution.LOOKUP_SECONDS
        )
        _check_addresses(request.url, addresses, self._allowance)
        permitted = addresses[:MAX_ADDRESSES_TRIED]
        for address in permitted[:-1]:
            try:
                return await self._call(request, address)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue  # Nothing was sent yet.
        return await self._call(request, permitted[-1])

    async def _call(self, request: httpx.Request, address: Address) -> httpx.Response:
        response = await super().handle_async_request(_direct_to(request, address))
        # Don't decompress: a small compressed response may expand to a huge one.
        response.headers.pop("content-encoding", None)
        return response


def _direct_to(request: httpx.Request, address: Address) -> httpx.Request:
    """Return a copy of the request to `address` that keeps its Host header and TLS name."""
    return httpx.Request(
        request.method,
        request.url.copy_with(host=str(address)),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": _host(request.url)},
    )


def _parse_url(url: str, allowance: Allowance) -> httpx.URL:
    if len(url) > MAX_URL_LENGTH:
        raise UrlRefused(f"the URL is longer than {MAX_URL_LENGTH} characters")
    if not url.isprintable() or " " in url or "\\" in url:
        raise UrlRefused("the URL contains an invalid character")
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError) as error:
        raise UrlRefused("not a valid URL") from error
    _check(parsed, allowance)
    return parsed


def _check(url: httpx.URL, allowance: Allowance) -> None:
    """Raise :class:`UrlRefused` if the URL is forbidden whatever its host resolves to."""
    host = _host(url)
    if url.scheme not in {"https", "http"} or not host:
        raise UrlRefused("the URL must begin with https:// and name a host")
    if url.port is not None and not 0 < url.port < 65536:
        raise UrlRefused("the URL's port must be between 1 and 65535")
    if url.userinfo:
        raise UrlRefused("the URL must not contain a user or a password")
    if url.scheme == "http" and not allowance.networks:
        raise UrlRefused("the URL must begin with https://")
    if "%" in host:
        raise UrlRefused("the URL must not name a network interface")
    if parse_ip(host) is None and _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]):
        raise UrlRefused(
            "the IP address must be four numbers separated by dots, without leading zeros"
        )


def _resolve(url: httpx.URL, resolver: name_resolution.Resolve, seconds: float) -> list[Address]:
    host = _host(url)
    literal = parse_ip(host)
    if literal is not None:
        return [literal]
    port = url.port or (443 if url.scheme == "https" else 80)
    texts = name_resolution.look_up(host, port, resolver=resolver, seconds=seconds)
    return [ipaddress.ip_address(text) for text in texts]


def _check_addresses(url: httpx.URL, addresses: Sequence[Address], allowance: Allowance) -> None:
    allowance.check(_host(url), addresses)
    if url.scheme == "http" and not all(allowance.allows(address) for address in addresses):
        raise UrlRefused(
            f"the URL must begin with https://, except in the networks of {allowance.variable}"
        )


def _host(url: httpx.URL) -> str:
    return url.raw_host.decode("ascii").lower()  # ASCII, as DNS and TLS use it.


@functools.cache
def _default_tls_context() -> ssl.SSLContext:
    return httpx.create_ssl_context()
