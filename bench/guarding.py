"""What the patterns add to a call that does well: breakers beside other breakers, a whole policy
beside libraries that do nothing but try again, and ten threads at once.

Run as a process of its own: `python -m bench.guarding ROUNDS`. Needs no console. Prints one JSON
line.
"""

import asyncio
import json
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "client"))

from bench import clients
from switchgear import Policy
from switchgear.cancellation import current_scope
from switchgear.patterns.breaker import Breaker
from switchgear.patterns.parameters import BreakerParameters, BulkheadParameters, RetryParameters
from switchgear.testing import Console

CALLS = 5_000
TURNS = 3
"""Each round has so many, and of them the quickest counts."""
THREADS = 10
SLEEP_SECONDS = 0.1
PATIENCE_SECONDS = 300

Call = Callable[[int], Any]

ALONE, WINDOW_OF_TIME, SLOW, BLOCK, STACK = (
    "switchgear, breaker",
    "switchgear, breaker, window of time",
    "switchgear, breaker, slow calls too",
    "switchgear, breaker, as a block",
    "switchgear, whole policy",
)
OURS = (ALONE, WINDOW_OF_TIME, SLOW, BLOCK, STACK)
OTHERS = "tenacity, retry only"
PEER = "circuitbreaker"


@dataclass(frozen=True)
class Guarding:
    """Microseconds of CPU time that each adds to a call, medians of rounds; `coroutines` the same
    for those, awaited. `together`: seconds for ten threads that sleep a tenth of a second each.
    `second_look`: a second check of the switch within a guarded call."""

    breakers: dict[str, float]
    stacks: dict[str, float]
    coroutines: dict[str, float]
    together: dict[str, float]
    second_look: float


def measure(rounds: int) -> Guarding:
    """In another process, on the core of this one."""
    with clients.running("bench.guarding", rounds) as guarding:
        return Guarding(**guarding.line(PATIENCE_SECONDS, "patterns around calls"))


def main(rounds: int) -> None:
    found = Guarding(
        breakers=added(bare, breakers(), rounds, took),
        stacks=added(bare, stacks(), rounds, took),
        coroutines=added(abare, coroutines(), rounds, atook),
        together={name: together(make) for name, make in SLEEPERS.items()},
        second_look=second_look(rounds),
    )
    print(json.dumps(asdict(found)), flush=True)


def bare(value: int) -> int:
    return value


async def abare(value: int) -> int:
    return value


def breakers() -> dict[str, Call]:
    """Each around the same function, as its manual shows it, with its defaults."""
    import circuitbreaker
    import purgatory
    import pybreaker

    timed = BreakerParameters(window_type="time", failure_count=5)
    entered = Breaker("d")

    def block(value: int) -> int:
        with entered:
            return value

    return {
        ALONE: Breaker("d")(bare),
        WINDOW_OF_TIME: Breaker("d", timed)(bare),
        SLOW: Breaker("d", BreakerParameters(slow_call_seconds=5))(bare),
        BLOCK: block,
        PEER: circuitbreaker.circuit(bare),
        "pybreaker": pybreaker.CircuitBreaker()(bare),
        "purgatory": purgatory.SyncCircuitBreakerFactory()("d")(bare),
    }


def stacks() -> dict[str, Call]:
    """All of a policy: fallback, kill switch, deadline, retry, breaker, bulkhead, timeout. Of the
    others retries alone, as they have nothing else."""
    import stamina
    import tenacity

    return {
        STACK: policy()(bare),
        OTHERS: tenacity.retry(stop=tenacity.stop_after_attempt(3))(bare),
        "stamina, retry only": stamina.retry(on=ValueError, attempts=3)(bare),
    }


def coroutines() -> dict[str, Call]:
    import stamina
    import tenacity

    return {
        ALONE: Breaker("d")(abare),
        STACK: policy(acached)(abare),
        OTHERS: tenacity.retry(stop=tenacity.stop_after_attempt(3))(abare),
        "stamina, retry only": stamina.retry(on=ValueError, attempts=3)(abare),
    }


async def acached(value: int) -> int:
    return value


def policy(fallback: Call = bare) -> Policy:
    """Seven layers, with the window that the console's `failure_threshold` means."""
    return (
        Console()
        .client(service="core")
        .policy(
            "core->oracle",
            feature="ask",
            deadline_seconds=60.0,
            timeout_seconds=30.0,
            retry=RetryParameters(),
            breaker=BreakerParameters(window_type="time", failure_count=5),
            bulkhead=BulkheadParameters(limit=50, queue=10, queue_seconds=5),
            fallback=fallback,
        )
    )


def second_look(rounds: int) -> float:
    """Microseconds that a second check of the switch takes within a guard, without the loop."""
    looks: list[float] = []

    @Console().client(service="core").guard(feature="ask")
    def within() -> None:
        scope = current_scope.get()
        assert scope is not None
        refusal = scope.source.refusal
        floor = min(took(lambda _: None) for _ in range(TURNS))
        looks.append(min(took(lambda _: refusal()) for _ in range(TURNS)) - floor)

    for _ in range(rounds):
        within()
    return median(looks)


def added(
    floor: Call, guarded: Mapping[str, Call], rounds: int, timed: Callable[[Call], float]
) -> dict[str, float]:
    """Microseconds beyond those of the bare call, by name: all take turns."""
    for call in (floor, *guarded.values()):
        timed(call)  # Warms up.
    seen: dict[str, list[float]] = {name: [] for name in guarded}
    for _ in range(rounds):
        least = min(timed(floor) for _ in range(TURNS))
        for name, call in guarded.items():
            seen[name].append(min(timed(call) for _ in range(TURNS)) - least)
    return {name: median(each) for name, each in seen.items()}


def took(call: Call) -> float:
    """Microseconds of CPU time for one call: nothing here waits, and others may be at work."""
    calls = range(CALLS)
    began = time.process_time()
    for n in calls:
        call(n)
    return (time.process_time() - began) / CALLS * 1e6


def atook(call: Callable[[int], Awaitable[Any]]) -> float:
    """The same, awaited in an event loop."""

    async def run() -> float:
        calls = range(CALLS)
        began = time.process_time()
        for n in calls:
            await call(n)
        return (time.process_time() - began) / CALLS * 1e6

    return asyncio.run(run())


def _ours() -> Callable[[], None]:
    return Breaker("d")(lambda: time.sleep(SLEEP_SECONDS))


def _pybreakers() -> Callable[[], None]:
    import pybreaker

    breaker = pybreaker.CircuitBreaker()
    return lambda: breaker.call(time.sleep, SLEEP_SECONDS)


SLEEPERS: dict[str, Callable[[], Callable[[], None]]] = {
    "switchgear": _ours,
    "pybreaker": _pybreakers,
}


def together(make: Callable[[], Callable[[], None]]) -> float:
    """Seconds until ten threads have come through one breaker, each with one call."""
    call = make()
    threads = [threading.Thread(target=call) for _ in range(THREADS)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began


if __name__ == "__main__":
    main(int(sys.argv[1]))
