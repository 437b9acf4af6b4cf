"""Measures propagation: the latency from an operator's commit to one client."""

import random
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager

from . import fixtures, latencies, load_processes, stalls
from .latencies import Latencies
from .load_processes import LoadProcess
from .servers import ServerUnderTest

BRISKLY = (0.01, 0.06)
ONE_BY_ONE = (0.2, 0.4)
"""Ranges of pauses between engagements, in seconds; after a long one no change waits."""
FIRST_SECONDS = 20


def by_poll(server: ServerUnderTest, token: str) -> AbstractContextManager[LoadProcess]:
    """Run one client that polls without pause on one connection."""
    return load_processes.running("bench.poller", server.port, token)


def by_held_poll(server: ServerUnderTest, token: str) -> AbstractContextManager[LoadProcess]:
    """Run one client that polls with `?wait=`."""
    return load_processes.running("bench.listeners", "held", server.port, token, 1)


def by_stream(server: ServerUnderTest, token: str) -> AbstractContextManager[LoadProcess]:
    """Run one client that listens to the event stream."""
    return load_processes.running("bench.listeners", "streams", server.port, token, 1)


def measure(
    server: ServerUnderTest,
    token: str,
    keys: Iterable[str],
    way: Callable[[ServerUnderTest, str], AbstractContextManager[LoadProcess]],
    pause: tuple[float, float] = BRISKLY,
) -> Latencies:
    """Engage the features `keys` in turn; return the latencies until one client has the change."""
    with way(server, token) as client, stalls.watch_stalls() as stalled:
        client.line(FIRST_SECONDS, "the first version")
        committed = {}
        for version, moment in fixtures.engage(iter(keys)):
            committed[version] = moment
            time.sleep(random.uniform(*pause))
        time.sleep(2)
        told = list(_latencies(client))
    found = [_first(told, version) - moment for version, moment in committed.items()]
    return latencies.summarize((each / 1e6 for each in found), stalled.worst_ms)


def _latencies(client: LoadProcess) -> Iterator[tuple[int, int]]:
    for line in client.waiting():
        yield line["version"], line["moments"][0]


def _first(told: list[tuple[int, int]], version: int) -> int:
    """Return the time at which the client first had `version` or a newer one."""
    for seen, moment in told:
        if seen >= version:
            return moment
    raise SystemExit(f"bench: the client was never told version {version}")
