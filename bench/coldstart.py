"""Measures a cold start: thousands of services start at once, while a person uses the console."""

import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass

from . import latencies, load_processes, page_watch, stalls
from .latencies import Latencies
from .servers import ServerUnderTest

PROCESSES = 2
SECONDS = 10
PATIENCE_SECONDS = 60
IDLE_SECONDS = 10


@dataclass(frozen=True)
class ColdStart:
    """The latencies of `count` new clients, and of console pages before and during their start.

    `lost` counts failed clients by reason. `cpu_us` is the server's CPU time per client.
    `load_share` is the share of a CPU core used by the busiest load process, and `late_ms` the
    longest delay of a load process behind its schedule.
    """

    count: int
    latencies: Latencies
    lost: Counter[str]
    idle: dict[str, Latencies]
    busy: dict[str, Latencies]
    cpu_us: float
    load_share: float
    late_ms: float


def measure(
    web: ServerUnderTest, token: str, count: int, switches: int, person: page_watch.Browser
) -> ColdStart:
    """Start `count` clients within `SECONDS`, and return what their start costs.

    Each client fetches the snapshot of `switches` switches; meanwhile `person` fetches console
    pages.
    """
    with page_watch.watch_pages(person):
        time.sleep(3)  # The first pages load templates and open connections.
    with page_watch.watch_pages(person) as idle:
        time.sleep(IDLE_SECONDS)
    web.settle()
    before = web.cpu_seconds()
    with ExitStack() as stack:
        stalled = stack.enter_context(stalls.watch_stalls())
        busy = stack.enter_context(page_watch.watch_pages(person))
        share = count // PROCESSES
        arguments = (web.port, token, share, SECONDS, switches)
        loads = [
            stack.enter_context(load_processes.running("bench.snapshot_clients", *arguments))
            for _ in range(PROCESSES)
        ]
        results = [load.line(SECONDS + PATIENCE_SECONDS, "a cold start") for load in loads]
    took = [each for result in results for each in result["delays_ms"]]
    lost = sum((Counter(result["lost"]) for result in results), Counter[str]())
    if len(took) < 2:
        raise SystemExit(f"bench: nobody is served at a cold start: {dict(lost)}")
    return ColdStart(
        count=share * PROCESSES,
        latencies=latencies.summarize(took, stalled.worst_ms),
        lost=lost,
        idle=idle.summed_up(),
        busy=busy.summed_up(),
        cpu_us=(web.cpu_seconds() - before) / count * 1e6,
        load_share=max(result["cpu_seconds"] / result["seconds"] for result in results),
        late_ms=max(result["late_ms"] for result in results),
    )
