"""Concurrent probes of many targets, by TCP connection or HTTP status."""

import asyncio
import contextlib
import functools
import ipaddress
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import httpx

from breakers.policies.addresses import DEFAULT_PORTS, ProbeTarget, parse_target
from controlplane.core.egress_guard import allowed_networks, name_resolution
from controlplane.core.egress_guard.allowed_networks import PROBES, Address, UrlRefused
from controlplane.core.egress_guard.name_resolution import Unresolved

TIMEOUT_SECONDS = 2.0
LOOK_UP_SECONDS = 1.8
"""DNS timeout, shorter than `TIMEOUT_SECONDS` so that a failed look-up is reported as such."""
MAX_CONCURRENT = 16
MIN_FAULTY_STATUS = 500
"""Lowest HTTP status that counts as a failure."""
MAX_ERROR_LENGTH = 500

LookUp = Callable[[ProbeTarget], Awaitable[Address]]


@dataclass(frozen=True)
class ProbeResult:
    """The result of a probe; `answered` is None if the URL may not be probed."""

    answered: bool | None
    took_ms: float
    error: str = ""


def probe_all(
    urls: Mapping[str, str], *, resolver: name_resolution.Resolve = name_resolution.resolve
) -> dict[str, ProbeResult]:
    """Probe all URLs concurrently; return the results by the keys of `urls`."""
    return asyncio.run(_probe_all(urls, resolver))


async def _probe_all(
    urls: Mapping[str, str], resolver: name_resolution.Resolve
) -> dict[str, ProbeResult]:
    room = asyncio.Semaphore(MAX_CONCURRENT)
    with ThreadPoolExecutor(MAX_CONCURRENT, thread_name_prefix="probe") as pool:

        async def address(target: ProbeTarget) -> Address:
            look_up = functools.partial(
                resolve_address, target, seconds=LOOK_UP_SECONDS, resolver=resolver
            )
            return await asyncio.get_running_loop().run_in_executor(pool, look_up)

        async def one(url: str) -> ProbeResult:
            async with room:
                return await _probe(url, address)

        results = await asyncio.gather(*(one(url) for url in urls.values()))
    return dict(zip(urls, results, strict=True))


async def _probe(url: str, look_up: LookUp) -> ProbeResult:
    try:
        target = parse_target(url)
    except ValueError as problem:
        return ProbeResult(None, 0.0, str(problem))
    began = time.monotonic()
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            error = await _find_fault(target, look_up)
    except UrlRefused as refused:
        return ProbeResult(None, 0.0, str(refused))
    except Unresolved as failure:
        error = str(failure)
    except (TimeoutError, httpx.TimeoutException):
        error = f"no response within {TIMEOUT_SECONDS:g} s"
    except (OSError, httpx.HTTPError, httpx.InvalidURL) as problem:
        error = f"connection failed: {problem or type(problem).__name__}"
    took_ms = round((time.monotonic() - began) * 1000, 1)
    return ProbeResult(not error, took_ms, error[:MAX_ERROR_LENGTH])


async def _find_fault(target: ProbeTarget, look_up: LookUp) -> str:
    """Probe a target; return a description of the failure, empty on success."""
    address = allowed_networks.parse_ip(target.host)
    if address is None:
        address = await look_up(target)
    else:
        PROBES.check(target.host, [address])
    if target.scheme == "tcp":
        _, writer = await asyncio.open_connection(str(address), target.port)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        return ""
    url = httpx.URL(
        scheme=target.scheme, host=str(address), port=target.port, raw_path=target.path.encode()
    )
    return await _probe_http(url, target)


async def _probe_http(url: httpx.URL, target: ProbeTarget) -> str:
    # Redirects are not followed: they would bypass the egress guard.
    transport = httpx.AsyncHTTPTransport(verify=_ssl_context(), trust_env=False)
    usual = DEFAULT_PORTS[target.scheme] == target.port
    host = f"[{target.host}]" if ":" in target.host else target.host
    headers = {
        "Host": host if usual else f"{host}:{target.port}",
        "User-Agent": "Switchgear",
        "Connection": "close",
    }
    async with (
        httpx.AsyncClient(transport=transport, timeout=TIMEOUT_SECONDS) as client,
        client.stream(
            "GET", url, headers=headers, extensions={"sni_hostname": target.host}
        ) as response,
    ):
        status = response.status_code
    return f"status {status}" if status >= MIN_FAULTY_STATUS else ""


@functools.cache
def _ssl_context() -> ssl.SSLContext:
    return httpx.create_ssl_context()


def resolve_address(
    target: ProbeTarget,
    *,
    seconds: float,
    resolver: name_resolution.Resolve = name_resolution.resolve,
) -> Address:
    """Return an IP address of the target's host.

    Raise :class:`UrlRefused` if one of the host's addresses may not be probed, and
    :class:`Unresolved` if the name can't be resolved in time. The connection must use this address:
    a second look-up could return another one that was not checked.
    """
    texts = name_resolution.look_up(target.host, target.port, resolver=resolver, seconds=seconds)
    found = [ipaddress.ip_address(text) for text in texts]
    PROBES.check(target.host, found)
    return found[0]
