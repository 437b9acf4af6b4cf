"""Measures a stream of a hundred thousand dead letters: latency of pages and API.

The letters are written to Redis as a consumer would, and this process indexes them in place of the
periodic task. Requests go to the web process, one at a time.
"""

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote, urlencode

import orjson

from . import http_client, latencies, page_watch
from .latencies import Latencies
from .servers import ServerUnderTest

NAME = "axiom:dlq:bench"
STREAM = quote(NAME, safe="")
API = "/api/v1/dlq/"
AT_ONCE = 5000
ERRORS = (
    ("TimeoutError", "order {n} failed: timeout after {s} s on host-{h}"),
    ("KeyError", "no key 'customer:{n}'"),
    ("ValueError", "total of order {n} is negative: -{s}.50"),
)
PAGE_MS, GROUPS_MS = 200.0, 2000.0
COLD_SECONDS = 8.0
MAX_GROWTH_MIB = 100.0
TIMES = 15


@dataclass(frozen=True)
class Request:
    """An HTTP request with its measured latencies; `wanted_ms` is the target for their p99."""

    name: str
    latencies: Latencies
    wanted_ms: float


@dataclass(frozen=True)
class DeadLetterCosts:
    """The costs of `count` dead letters in one stream.

    `cold_seconds` and `cold_cpu` are wall and CPU time to index all of them. `first_groups_ms` is
    the first request for error groups, before indexing. `growth_mib` is the growth of the server's
    memory.
    """

    count: int
    cold_seconds: float
    cold_cpu: float
    first_groups_ms: float
    requests: list[Request]
    growth_mib: float
    rss_mib: float


def write_letters(count: int, name: str = NAME) -> None:
    """Write `count` dead letters to a stream, with nested JSON payloads and three errors."""
    from breakers.dead_letters.redis_servers import servers

    client = servers.get_server("default").client
    for start in range(0, count, AT_ONCE):
        with client.pipeline(transaction=False) as pipeline:
            for n in range(start, min(start + AT_ONCE, count)):
                pipeline.xadd(name, _fields(n))
            pipeline.execute()


def clear(*names: str) -> None:
    """Delete the stream, or those with these names."""
    from breakers.dead_letters.redis_servers import servers

    servers.get_server("default").client.delete(*(names or [NAME]))


def measure(
    server: ServerUnderTest, token: str, person: page_watch.Browser, count: int
) -> DeadLetterCosts:
    """Measure the index and the pages of `count` letters.

    The first request for error groups comes before the letters are indexed, all others after.
    """
    _api(server, token, API)  # Warms connections and caches.
    before = server.rss_bytes()
    first = _milliseconds(lambda: _api(server, token, f"{API}streams/{STREAM}/groups/"))
    cold_wall, cold_cpu = _read_all()
    requests = list(_all(server, token, person))
    after = server.rss_bytes()
    return DeadLetterCosts(
        count=count,
        cold_seconds=cold_wall,
        cold_cpu=cold_cpu,
        first_groups_ms=first,
        requests=requests,
        growth_mib=(after - before) / 2**20,
        rss_mib=after / 2**20,
    )


def _fields(n: int) -> Mapping[str, str]:
    error_type, error = ERRORS[n % len(ERRORS)]
    items = [{"sku": f"A-{n + more}", "count": more} for more in range(1, 4)]
    payload = {"order": {"id": n, "items": items}, "customer": {"id": n % 977, "token": "secret"}}
    return {
        "type": "order.paid",
        "payload": orjson.dumps(payload).decode(),
        "trace": f"{n:032x}",
        "dlq_error": error.format(n=n, s=n % 60, h=n % 7),
        "dlq_error_type": error_type,
        "dlq_attempts": "3",
        "dlq_original_id": f"1763690000000-{n}",
        "dlq_group": "billing",
        "dlq_failed_at": "2026-11-20T10:00:00Z",
    }


def _read_all() -> tuple[float, float]:
    """Index all letters of the stream again; return the wall and CPU seconds that this takes."""
    from breakers.dead_letters.models import Letter
    from breakers.dead_letters.monitoring import indexer, streams
    from controlplane.core.clock import db_now

    stream = streams.find_stream("default", NAME, db_now())
    Letter.objects.filter(stream=stream).delete()
    stream.indexed_to = ""
    stream.save(update_fields=["indexed_to"])
    gc.collect()
    wall, cpu = time.monotonic(), time.process_time()
    while not indexer.catch_up(stream, db_now(), seconds=1.0):
        pass
    return time.monotonic() - wall, time.process_time() - cpu


def _all(server: ServerUnderTest, token: str, person: page_watch.Browser) -> Iterator[Request]:
    from breakers.dead_letters.letters import ids
    from breakers.dead_letters.models import Letter

    messages = f"{API}streams/{STREAM}/messages/"
    pages = f"/dead-letters/default/{STREAM}/"
    group = orjson.loads(_api(server, token, f"{API}streams/{STREAM}/groups/"))["results"][0]
    positions = Letter.objects.order_by("position").values_list("position", flat=True)
    deep = ids.to_entry_id(positions[positions.count() // 2])
    of_group = urlencode({"fingerprint": group["fingerprint"]})
    for name, path, wanted in (
        ("inbox, API", API, PAGE_MS),
        ("groups, API", f"{API}streams/{STREAM}/groups/", GROUPS_MS),
        ("50 letters, API", messages, PAGE_MS),
        ("50 letters from the middle, API", f"{messages}?cursor={deep}", PAGE_MS),
        ("50 letters of one error, API", f"{messages}?{of_group}", PAGE_MS),
        ("50 letters by a text found often, API", f"{messages}?q=A-99", GROUPS_MS),
    ):
        yield _time_requests(name, partial(_api, server, token, path), wanted)
    for name, path, wanted in (
        ("inbox, page", "/dead-letters/", PAGE_MS),
        ("groups, page", pages, GROUPS_MS),
        ("letters, page", f"{pages}?tab=messages", PAGE_MS),
    ):
        yield _time_requests(name, partial(person.ask, "GET", path, 200), wanted)


def _time_requests(name: str, ask: Callable[[], bytes], wanted: float) -> Request:
    gc.collect()
    took = [_milliseconds(ask) for _ in range(TIMES + 1)][1:]
    return Request(name, latencies.summarize(took), wanted)


def _milliseconds(ask: Callable[[], bytes]) -> float:
    began = time.monotonic()
    ask()
    return (time.monotonic() - began) * 1e3


def _api(server: ServerUnderTest, token: str, path: str) -> bytes:
    return http_client.fetch(server.port, path, http_client.bearer(token)).body
