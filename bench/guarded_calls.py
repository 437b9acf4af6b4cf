"""Measures the CPU time that breakers and policies add to a call, beside other libraries.

Run as a process of its own, `python -m bench.guarded_calls ROUNDS`, without a console. Prints one
JSON line.
"""

import asyncio
import gc
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

from switchgear import Policy
from switchgear.cancellation import current_scope
from switchgear.patterns.breaker import Breaker
from switchgear.patterns.parameters import BreakerParameters, BulkheadParameters, RetryParameters
from switchgear.testing import Console

from . import load_processes

CALLS = 5_000
TURNS = 3
"""Turns in a round, of which the fastest counts."""
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
class GuardCosts:
    """The CPU microseconds that each library adds to a call, as medians by library.

    `breakers` are for a breaker, `stacks` and `coroutines` for a whole policy around a function and
    a coroutine function. `together` is the wall time in seconds of ten threads that each make one
    call of 0.1 s through the same breaker. `second_look` is the microseconds of a second check of
    the switch within a guarded call.
    """

    breakers: dict[str, float]
    stacks: dict[str, float]
    coroutines: dict[str, float]
    together: dict[str, float]
    second_look: float


def measure(rounds: int) -> GuardCosts:
    """Run :func:`main` in another process, on this process's CPU core, and return its results."""
    with load_processes.running("bench.guarded_calls", rounds) as guarding:
        return GuardCosts(**guarding.line(PATIENCE_SECONDS, "patterns around calls"))


def main(rounds: int) -> None:
    found = GuardCosts(
        breakers=added_micros(bare, compare_breakers(), rounds, time_call),
        stacks=added_micros(bare, compare_policies(bare), rounds, time_call),
        coroutines=added_micros(
            abare,
            {ALONE: Breaker("d")(abare), **compare_policies(abare)},
            rounds,
            time_awaited_call,
        ),
        together={name: time_threads(call) for name, call in guard_sleeps().items()},
        second_look=measure_second_check(rounds),
    )
    print(json.dumps(asdict(found)), flush=True)


def bare(value: int) -> int:
    return value


async def abare(value: int) -> int:
    return value


def compare_breakers() -> dict[str, Call]:
    """Return the same function wrapped in each library's breaker, with the library's defaults."""
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


def compare_policies(call: Call) -> dict[str, Call]:
    """Return `call` wrapped in a whole Switchgear policy, and in the retries of other libraries."""
    import stamina
    import tenacity

    return {
        STACK: build_policy(fallback=call)(call),
        OTHERS: tenacity.retry(stop=tenacity.stop_after_attempt(3))(call),
        "stamina, retry only": stamina.retry(on=ValueError, attempts=3)(call),
    }


def build_policy(fallback: Call) -> Policy:
    """Return a policy of fallback, kill switch, deadline, retry, breaker, bulkhead and timeout."""
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


def measure_second_check(rounds: int) -> float:
    """Return the microseconds of a second check of the switch within a guarded call."""
    looks: list[float] = []

    @Console().client(service="core").guard(feature="ask")
    def measure_inside() -> None:
        scope = current_scope.get()
        assert scope is not None
        refusal = scope.source.refusal
        floor = min(time_call(lambda _: None) for _ in range(TURNS))
        looks.append(min(time_call(lambda _: refusal()) for _ in range(TURNS)) - floor)

    for _ in range(rounds):
        measure_inside()
    return median(looks)


def added_micros(
    floor: Call, guarded: Mapping[str, Call], rounds: int, timed: Callable[[Call], float]
) -> dict[str, float]:
    """Return the microseconds that each of `guarded` adds to the bare call `floor`, by name."""
    for call in (floor, *guarded.values()):
        timed(call)  # Warms up.
    added: dict[str, list[float]] = {name: [] for name in guarded}
    for _ in range(rounds):
        least = min(timed(floor) for _ in range(TURNS))
        for name, call in guarded.items():
            added[name].append(min(timed(call) for _ in range(TURNS)) - least)
    return {name: median(each) for name, each in added.items()}


def time_call(call: Call) -> float:
    """Return the CPU microseconds of one call. Wall time would include other processes."""
    calls = range(CALLS)
    gc.collect()
    began = time.process_time()
    for n in calls:
        call(n)
    return (time.process_time() - began) / CALLS * 1e6


def time_awaited_call(call: Callable[[int], Awaitable[Any]]) -> float:
    """Return the CPU microseconds of one awaited call in an event loop."""

    async def run() -> float:
        calls = range(CALLS)
        gc.collect()
        began = time.process_time()
        for n in calls:
            await call(n)
        return (time.process_time() - began) / CALLS * 1e6

    return asyncio.run(run())


def guard_sleeps() -> dict[str, Callable[[], None]]:
    import pybreaker

    other = pybreaker.CircuitBreaker()
    return {
        "switchgear": Breaker("d")(lambda: time.sleep(SLEEP_SECONDS)),
        "pybreaker": lambda: other.call(time.sleep, SLEEP_SECONDS),
    }


def time_threads(call: Callable[[], None]) -> float:
    """Return the seconds that ten threads need for one call each through the same breaker."""
    threads = [threading.Thread(target=call) for _ in range(THREADS)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began


if __name__ == "__main__":
    main(int(sys.argv[1]))
