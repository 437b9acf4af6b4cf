"""One change, thousands of listeners: how long until each has it, and what that costs."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPConnection

from bench import clients, delays, ground, stalls
from bench.delays import Delays
from bench.servers import HOST, Server

ARRIVE_SECONDS = 60
REACH_SECONDS = 20

Ring = Callable[[], tuple[int, int]]
"""Makes a change; returns (its version, the nanosecond from which its delay counts)."""


@dataclass(frozen=True)
class Spread:
    """What one crowd saw. `kib` is the server's memory per connection; `cpu_ms` its CPU time for
    one change, `load_ms` that of the clients."""

    name: str
    count: int
    delays: Delays
    kib: float
    cpu_ms: float
    load_ms: float


def measure(
    name: str, server: Server, kind: str, token: str, count: int, changes: int, ring: Ring
) -> Spread:
    """Let `count` clients listen while `changes` changes are made, one after the other.

    Wants a server that has not held anybody before: memory that was given back would not count.
    """
    server.settle()
    empty = server.rss_bytes()
    took: list[float] = []
    cpu = load = 0.0
    with clients.running("bench.crowd", kind, server.port, token, count) as crowd:
        crowd.line(ARRIVE_SECONDS, f"{name}: {count} arrive")
        server.settle()
        full = server.rss_bytes()
        with stalls.watched() as stalled:
            for _ in range(changes):
                cpu_before, load_before = server.cpu_seconds(), crowd.cpu_seconds()
                version, moment = ring()
                told = crowd.line(REACH_SECONDS, f"{name}: version {version} reaches all")
                if told["version"] != version:
                    raise SystemExit(f"bench: {name}: told {told['version']}, not {version}")
                took += [(each - moment) / 1e6 for each in told["moments"]]
                server.settle()
                cpu += server.cpu_seconds() - cpu_before
                load += crowd.cpu_seconds() - load_before
    return Spread(
        name=name,
        count=count,
        delays=delays.summed_up(took, stalled.worst_ms),
        kib=(full - empty) / 1024 / count,
        cpu_ms=cpu / changes * 1e3,
        load_ms=load / changes * 1e3,
    )


def by_engaging(prefix: str) -> Ring:
    """A change as an operator makes it: a switch is engaged."""
    engagements: Iterator[tuple[int, int]] = ground.engage(f"{prefix}-{n}" for n in range(1000))
    return lambda: next(engagements)


def by_hand(server: Server) -> Ring:
    """A change of `bench.holder`."""

    def ring() -> tuple[int, int]:
        connection = HTTPConnection(HOST, server.port, timeout=10)
        moment = time.monotonic_ns()
        connection.request("POST", "/ring")
        version = int(connection.getresponse().read())
        connection.close()
        return version, moment

    return ring
