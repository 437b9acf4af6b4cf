"""Queries to many Prometheus servers at many moments, with limits on time and concurrency.

Whatever exceeds the total time is left for the next poll.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
    """A query for the counters of an SLI at moments (whole seconds, ascending).

    `url` is the server's; `good` and `total` are PromQL.
    """

    url: str
    good: str
    total: str
    moments: tuple[datetime, ...]


@dataclass(frozen=True)
class CounterReading:
    """The counters at a moment."""

    at: datetime
    good: float
    total: float


@dataclass(frozen=True)
class QueryResult:
    """Readings of the first `asked` moments, of which some may have had no data.

    `error` is what was wrong with the last one, or why no more were queried.
    """

    readings: tuple[CounterReading, ...] = ()
    asked: int = 0
    error: str = ""


class QueryFailed(Exception):
    """The server did not answer; it may later. If `of_server`, other queries would fail too."""

    def __init__(self, reason: str, *, of_server: bool = False) -> None:
        super().__init__(reason)
        self.of_server = of_server


@dataclass
class _PrometheusServer:
    """The connections to one server, its concurrency limit, and the error that took it `away`."""

    client: httpx.AsyncClient
    room: asyncio.Semaphore = field(
        default_factory=lambda: asyncio.Semaphore(MAX_CONCURRENT_PER_SERVER)
    )
    away: str = ""


def query_all(
    questions: Mapping[int, CounterQuery],
    *,
    resolver: name_resolution.Resolve = name_resolution.resolve,
    seconds: float = TOTAL_TIMEOUT_SECONDS,
) -> dict[int, QueryResult]:
    """Return the result of each query, by key; takes at most `seconds` and one more response."""
    return asyncio.run(_query_all(questions, resolver, seconds))


async def _query_all(
    questions: Mapping[int, CounterQuery], resolver: name_resolution.Resolve, seconds: float
) -> dict[int, QueryResult]:
    room = asyncio.Semaphore(MAX_CONCURRENT)
    end = asyncio.get_running_loop().time() + seconds
    by_server: dict[str, list[int]] = defaultdict(list)
    for key, question in questions.items():
        by_server[_server_key(question.url)].append(key)

    async def of_server(keys: Sequence[int]) -> list[tuple[int, QueryResult]]:
        transport = GuardedTransport(PROMETHEUS, resolver=resolver)
        timeouts = httpx.Timeout(RESPONSE_TIMEOUT_SECONDS, connect=CONNECT_TIMEOUT_SECONDS)
        async with httpx.AsyncClient(
            transport=transport, timeout=timeouts, headers=HEADERS, follow_redirects=False
        ) as client:
            server = _PrometheusServer(client)

            async def one(key: int) -> tuple[int, QueryResult]:
                async with server.room, room:
                    return key, await _run_query(questions[key], server, end)

            return list(await asyncio.gather(*(one(key) for key in keys)))

    groups = await asyncio.gather(*(of_server(keys) for keys in by_server.values()))
    return dict(pair for group in groups for pair in group)


async def _run_query(question: CounterQuery, server: _PrometheusServer, end: float) -> QueryResult:
    """Query moment after moment, until one fails or the time is over."""
    readings, queried, error = [], 0, ""
    for at in question.moments:
        if asyncio.get_running_loop().time() >= end:
            break
        try:
            reading = await _read_counters(question, at, server)
        except InvalidResponse as wrong:
            queried, error = queried + 1, str(wrong)
        except QueryFailed as silence:
            error = str(silence)
            if silence.of_server:
                server.away = error
            break
        else:
            queried, error = queried + 1, ""
            if reading is not None:
                readings.append(reading)
    return QueryResult(tuple(readings), queried, error[:MAX_ERROR_LENGTH])


async def _read_counters(
    question: CounterQuery, at: datetime, server: _PrometheusServer
) -> CounterReading | None:
    """Return both counters at a moment, None if one has no series.

    Raise :class:`InvalidResponse` or :class:`QueryFailed`.
    """
    both = (_read_counter(which, question, at, server) for which in ("good", "total"))
    good, total = await asyncio.gather(*both, return_exceptions=True)
    if isinstance(good, BaseException):
        raise good
    if isinstance(total, BaseException):
        raise total
    if good is None or total is None:
        return None
    if good > total:
        raise InvalidResponse(f"good is {good:g} and more than total, which is {total:g}")
    return CounterReading(at, good, total)


async def _read_counter(
    which: str, question: CounterQuery, at: datetime, server: _PrometheusServer
) -> float | None:
    body = await _send_query(which, question, at, server)
    try:
        return responses.parse_counter(body)
    except InvalidResponse as wrong:
        raise InvalidResponse(f"{which}: {wrong}") from wrong


async def _send_query(
    which: str, question: CounterQuery, at: datetime, server: _PrometheusServer
) -> bytes:
    if server.away:
        raise QueryFailed(server.away, of_server=True)
    parameters = {"query": getattr(question, which), "time": str(int(at.timestamp()))}
    try:
        async with asyncio.timeout(RESPONSE_TIMEOUT_SECONDS):
            status, body = await _fetch(server.client, f"{question.url}/api/v1/query", parameters)
    except UrlRefused as refused:
        raise QueryFailed(str(refused), of_server=True) from refused
    except Unresolved as unknown:
        raise QueryFailed(str(unknown), of_server=True) from unknown
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise QueryFailed("no connection", of_server=True) from error
    except (TimeoutError, httpx.TimeoutException) as error:
        raise QueryFailed(f"{which}: no answer within {RESPONSE_TIMEOUT_SECONDS:g} s") from error
    except httpx.TransportError as error:
        raise QueryFailed(f"the connection broke ({type(error).__name__})") from error
    except httpx.InvalidURL as error:
        raise QueryFailed("that is not a valid URL") from error
    if status != httpx.codes.OK:
        raise QueryFailed(f"{which}: {responses.describe_failure(status, body)}")
    return body


async def _fetch(
    client: httpx.AsyncClient, url: str, parameters: Mapping[str, str]
) -> tuple[int, bytes]:
    async with client.stream("GET", url, params=parameters) as response:
        body = b""
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > MAX_RESPONSE_BYTES:
                raise QueryFailed("the answer is too long: write sum(…), which is one series")
        return response.status_code, body


def _server_key(url: str) -> str:
    """Return what may share connections: never two host names, as they are pooled by address."""
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        return url
    return f"{parsed.scheme}://{parsed.netloc.decode('ascii', 'replace')}"
