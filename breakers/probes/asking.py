"""Asking many targets at once, each within two seconds: a connection, or the beginning of an answer
over HTTP."""

import asyncio
import contextlib
import functools
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from breakers.probes import guard
from controlplane.core.outbox.transports import names
from controlplane.core.outbox.transports.failures import TransientFailure

SECONDS = 2.0
AT_ONCE = 16
BROKEN_FROM = 500
"""HTTP statuses from here on say that it does not work; any other is an answer."""
LONGEST_ERROR = 500


@dataclass(frozen=True)
class Result:
    """Whether it answered, after how long, and what was wrong otherwise. `answered` is None if it
    may not be asked, which says nothing about it."""

    answered: bool | None
    took_ms: float
    error: str = ""


def ask_all(
    urls: Mapping[str, str], *, resolver: names.Resolve = names.resolve
) -> dict[str, Result]:
    """A result for each, by its name; it takes two seconds for each sixteen that hang."""
    return asyncio.run(_ask_all(urls, resolver))


async def _ask_all(urls: Mapping[str, str], resolver: names.Resolve) -> dict[str, Result]:
    room = asyncio.Semaphore(AT_ONCE)

    async def one(url: str) -> Result:
        async with room:
            return await _ask(url, resolver)

    results = await asyncio.gather(*(one(url) for url in urls.values()))
    return dict(zip(urls, results, strict=True))


async def _ask(url: str, resolver: names.Resolve) -> Result:
    began = time.monotonic()
    try:
        async with asyncio.timeout(SECONDS):
            error = await _asked(guard.parsed(url), resolver)
    except guard.Refused as refused:
        return Result(None, 0.0, str(refused))
    except TransientFailure as failure:
        error = failure.reason
    except (TimeoutError, httpx.TimeoutException):
        error = f"no answer within {SECONDS:g} s"
    except (OSError, httpx.HTTPError, httpx.InvalidURL) as problem:
        error = f"no connection: {problem or type(problem).__name__}"
    took_ms = round((time.monotonic() - began) * 1000, 1)
    return Result(not error, took_ms, error[:LONGEST_ERROR])


async def _asked(target: guard.Target, resolver: names.Resolve) -> str:
    """What is wrong with the answer; empty if nothing is."""
    address = await asyncio.to_thread(guard.address, target, seconds=SECONDS, resolver=resolver)
    if target.scheme == "tcp":
        _, writer = await asyncio.open_connection(str(address), target.port)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        return ""
    url = httpx.URL(
        scheme=target.scheme, host=str(address), port=target.port, raw_path=target.path.encode()
    )
    return await _over_http(url, target)


async def _over_http(url: httpx.URL, target: guard.Target) -> str:
    """Redirects are not followed: they would lead past the guard. The body is not read."""
    transport = httpx.AsyncHTTPTransport(verify=_trust(), trust_env=False)
    usual = guard.SCHEMES[target.scheme] == target.port
    host = f"[{target.host}]" if ":" in target.host else target.host
    headers = {
        "Host": host if usual else f"{host}:{target.port}",
        "User-Agent": "Switchgear",
        "Connection": "close",
    }
    async with (
        httpx.AsyncClient(transport=transport, timeout=SECONDS) as client,
        client.stream(
            "GET", url, headers=headers, extensions={"sni_hostname": target.host}
        ) as response,
    ):
        status = response.status_code
    return f"it answers {status}" if status >= BROKEN_FROM else ""


@functools.cache
def _trust() -> ssl.SSLContext:
    return httpx.create_ssl_context()
