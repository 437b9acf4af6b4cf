"""Measures how one change of a switch reaches thousands of listening clients: latency and cost."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from . import fixtures, http_client, latencies, load_processes, stalls
from .latencies import Latencies
from .servers import ServerUnderTest

ARRIVE_SECONDS = 60
REACH_SECONDS = 20

MakeChange = Callable[[], tuple[int, int]]
"""Makes a change; returns its version, and the nanosecond from which latency counts."""


@dataclass(frozen=True)
class FanoutCost:
    """Latency and cost of one change of a switch for `count` listening clients.

    `kib` is the server's memory per connection. `cpu_ms` and `load_ms` are the CPU times of the
    server and of the clients for one change.
    """

    name: str
    count: int
    latencies: Latencies
    kib: float
    cpu_ms: float
    load_ms: float


def measure(
    name: str,
    server: ServerUnderTest,
    kind: str,
    token: str,
    count: int,
    changes: int,
    ring: MakeChange,
) -> FanoutCost:
    """Connect `count` clients, make `changes` changes one after another, and return their costs.

    `ring` makes a change. The server must be newly started, because memory that it already holds is
    not counted.
    """
    server.settle()
    empty = server.rss_bytes()
    took: list[float] = []
    cpu = load = 0.0
    with load_processes.running("bench.listeners", kind, server.port, token, count) as crowd:
        crowd.line(ARRIVE_SECONDS, f"{name}: {count} arrive")
        server.settle()
        full = server.rss_bytes()
        with stalls.watch_stalls() as stalled:
            for _ in range(changes):
                cpu_before, load_before = server.cpu_seconds(), crowd.cpu_seconds()
                version, moment = ring()
                line = crowd.line(REACH_SECONDS, f"{name}: version {version} reaches all")
                if line["version"] != version:
                    raise SystemExit(f"bench: {name}: told {line['version']}, not {version}")
                took += [(each - moment) / 1e6 for each in line["moments"]]
                server.settle()
                cpu += server.cpu_seconds() - cpu_before
                load += crowd.cpu_seconds() - load_before
    return FanoutCost(
        name=name,
        count=count,
        latencies=latencies.summarize(took, stalled.worst_ms),
        kib=(full - empty) / 1024 / count,
        cpu_ms=cpu / changes * 1e3,
        load_ms=load / changes * 1e3,
    )


def engage_switch(prefix: str) -> MakeChange:
    """Return a function that engages one more switch at each call.

    It returns the version of the snapshot and the time of the commit (monotonic ns).
    """
    engagements: Iterator[tuple[int, int]] = fixtures.engage(f"{prefix}-{n}" for n in range(1000))
    return lambda: next(engagements)


def ring_holder(server: ServerUnderTest) -> MakeChange:
    """Return a function that makes `bare_asgi.holder` publish its next version.

    It returns the version and the time before the request (monotonic ns).
    """

    def ring() -> tuple[int, int]:
        moment = time.monotonic_ns()
        return int(http_client.fetch(server.port, "/ring", method="POST").body), moment

    return ring
