"""Client that queries many Prometheus servers at once, limited in time and concurrency."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import httpx

from controlplane.core.egress_guard import name_resolution
from controlplane.core.egress_guard.allowed_networks import PROMETHEUS, UrlRefused
from controlplane.core.egress_guard.guard import GuardedTransport
from controlplane.core.egress_guard.name_resolution import Unresolved

from . import responses
from .responses import InvalidResponse

RESPONSE_TIMEOUT_SECONDS = 5.0
CONNECT_TIMEOUT_SECONDS = 3.0
TOTAL_TIMEOUT_SECONDS = 8.0
MAX_CONCURRENT = 16
MAX_CONCURRENT_PER_SERVER = 4
MAX_RESPONSE_BYTES = 256 * 1024
MAX_ERROR_LENGTH = 500
HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "Switchgear"}


@dataclass(frozen=True)
class CounterQuery:
    """The PromQL of an SLI's counters, and the times (whole seconds, ascending) to query it at."""

    url: str
    good: str
    total: str
    moments: tuple[datetime, ...]


@dataclass(frozen=True)
class CounterReading:
    at: datetime
    good: float
    total: float


@dataclass(frozen=True)
class QueryResult:
    """The result of a :class:`CounterQuery`: the counters read at its times.

    Times without data have no reading. Only the first `queried` times were queried, for example
    because the server failed. `error` is the error of the last query, empty if it succeeded.
    """

    readings: tuple[CounterReading, ...] = ()
    queried: int = 0
    error: str = ""


class QueryFailed(Exception):
    """A query failed; if `is_server_wide`, all queries to that server would fail."""

    def __init__(self, reason: str, *, is_server_wide: bool = False) -> None:
        super().__init__(reason)
        self.is_server_wide = is_server_wide


@dataclass
class _PrometheusServer:
    """A Prometheus server; once `failure`, an error message, is set, it is not queried any more."""

    client: httpx.AsyncClient
    limit: asyncio.Semaphore
    failure: str = ""


def query_all(
    queries: Mapping[int, CounterQuery],
    *,
    resolver: name_resolution.Resolve = name_resolution.resolve,
    seconds: float = TOTAL_TIMEOUT_SECONDS,
) -> dict[int, QueryResult]:
    """Run queries concurrently, starting no request after `seconds`; return results by key."""
    return asyncio.run(_query_all(queries, resolver, seconds))


async def _query_all(
    queries: Mapping[int, CounterQuery], resolver: name_resolution.Resolve, seconds: float
) -> dict[int, QueryResult]:
    limit = asyncio.Semaphore(MAX_CONCURRENT)
    end = asyncio.get_running_loop().time() + seconds
    by_server: dict[str, list[int]] = defaultdict(list)
    for key, query in queries.items():
        try:  # Scheme, host and port identify a server.
            url = httpx.URL(query.url)
            server = f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}"
        except (httpx.InvalidURL, ValueError):
            server = query.url
        by_server[server].append(key)

    async def query_server(keys: Sequence[int]) -> list[tuple[int, QueryResult]]:
        transport = GuardedTransport(PROMETHEUS, resolver=resolver)
        timeouts = httpx.Timeout(RESPONSE_TIMEOUT_SECONDS, connect=CONNECT_TIMEOUT_SECONDS)
        async with httpx.AsyncClient(
            transport=transport, timeout=timeouts, headers=HEADERS, follow_redirects=False
        ) as client:
            server = _PrometheusServer(client, asyncio.Semaphore(MAX_CONCURRENT_PER_SERVER))

            async def run(key: int) -> tuple[int, QueryResult]:
                async with server.limit, limit:
                    return key, await _run_query(queries[key], server, end)

            return list(await asyncio.gather(*(run(key) for key in keys)))

    groups = await asyncio.gather(*map(query_server, by_server.values()))
    return dict(pair for group in groups for pair in group)


async def _run_query(query: CounterQuery, server: _PrometheusServer, end: float) -> QueryResult:
    """Query each moment in turn, until the server fails or the event loop's clock passes `end`."""
    readings, queried, error = [], 0, ""
    for at in query.moments:
        if asyncio.get_running_loop().time() >= end:
            break
        try:
            reading = await _read_counters(query, at, server)
        except InvalidResponse as invalid:
            queried, error = queried + 1, str(invalid)
        except QueryFailed as failed:
            error = str(failed)
            if failed.is_server_wide:
                server.failure = error
            break
        else:
            queried, error = queried + 1, ""
            if reading is not None:
                readings.append(reading)
    return QueryResult(tuple(readings), queried, error[:MAX_ERROR_LENGTH])


async def _read_counters(
    query: CounterQuery, at: datetime, server: _PrometheusServer
) -> CounterReading | None:
    both = (_read_counter(name, query, at, server) for name in ("good", "total"))
    good, total = await asyncio.gather(*both, return_exceptions=True)
    if isinstance(good, BaseException):
        raise good
    if isinstance(total, BaseException):
        raise total
    if good is None or total is None:
        return None
    if good > total:
        raise InvalidResponse(f"good ({good:g}) is more than total ({total:g})")
    return CounterReading(at, good, total)


async def _read_counter(
    name: str, query: CounterQuery, at: datetime, server: _PrometheusServer
) -> float | None:
    if server.failure:
        raise QueryFailed(server.failure, is_server_wide=True)
    parameters = {"query": getattr(query, name), "time": str(int(at.timestamp()))}
    try:
        async with asyncio.timeout(RESPONSE_TIMEOUT_SECONDS):
            status, body = await _fetch(server.client, f"{query.url}/api/v1/query", parameters)
    except (UrlRefused, Unresolved) as refused:
        raise QueryFailed(str(refused), is_server_wide=True) from refused
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise QueryFailed("connection failed", is_server_wide=True) from error
    except (TimeoutError, httpx.TimeoutException) as error:
        raise QueryFailed(f"{name}: no response within {RESPONSE_TIMEOUT_SECONDS:g} s") from error
    except httpx.TransportError as error:
        raise QueryFailed(f"the connection broke ({type(error).__name__})") from error
    except httpx.InvalidURL as error:
        raise QueryFailed("not a valid URL") from error
    if status != httpx.codes.OK:
        raise QueryFailed(f"{name}: {responses.describe_failure(status, body)}")
    try:
        return responses.parse_counter(body)
    except InvalidResponse as invalid:
        raise InvalidResponse(f"{name}: {invalid}") from invalid


async def _fetch(
    client: httpx.AsyncClient, url: str, parameters: Mapping[str, str]
) -> tuple[int, bytes]:
    async with client.stream("GET", url, params=parameters) as response:
        body = b""
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > MAX_RESPONSE_BYTES:
                raise QueryFailed("the response is too long: use sum(…), which returns one series")
        return response.status_code, body
