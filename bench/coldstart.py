"""Thousands of services start at once, with a person at the console of the same web process."""

import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass

from bench import clients, console, delays, stalls
from bench.delays import Delays
from bench.servers import Server

PROCESSES = 2
SECONDS = 10
PATIENCE_SECONDS = 60
IDLE_SECONDS = 10


@dataclass(frozen=True)
class ColdStart:
    """What the newcomers saw, and the person, alone and beside them.

    `load_share` is the busiest load process's share of its core, `late_ms` how far one was behind.
    """

    count: int
    delays: Delays
    lost: Counter[str]
    idle: dict[str, Delays]
    busy: dict[str, Delays]
    cpu_us: float
    load_share: float
    late_ms: float


def measure(
    web: Server, token: str, count: int, switches: int, person: console.Browser
) -> ColdStart:
    """Let `count` clients begin within `SECONDS`; each wants a snapshot of `switches` switches."""
    with console.watched(person):
        time.sleep(3)  # The first pages load templates and open connections.
    with console.watched(person) as idle:
        time.sleep(IDLE_SECONDS)
    web.settle()
    before = web.cpu_seconds()
    with ExitStack() as stack:
        stalled = stack.enter_context(stalls.watched())
        busy = stack.enter_context(console.watched(person))
        share = count // PROCESSES
        arguments = (web.port, token, share, SECONDS, switches)
        loads = [
            stack.enter_context(clients.running("bench.newcomers", *arguments))
            for _ in range(PROCESSES)
        ]
        seen = [load.line(SECONDS + PATIENCE_SECONDS, "a cold start") for load in loads]
    took = [each for one in seen for each in one["delays_ms"]]
    lost: Counter[str] = Counter()
    for one in seen:
        lost.update(one["lost"])
    if len(took) < 2:
        raise SystemExit(f"bench: nobody is served at a cold start: {dict(lost)}")
    return ColdStart(
        count=share * PROCESSES,
        delays=delays.summed_up(took, stalled.worst_ms),
        lost=lost,
        idle=idle.summed_up(),
        busy=busy.summed_up(),
        cpu_us=(web.cpu_seconds() - before) / count * 1e6,
        load_share=max(one["cpu_seconds"] / one["seconds"] for one in seen),
        late_ms=max(one["late_ms"] for one in seen),
    )
