"""Clients that failed together come back together, and what was recovering is down again."""

import random
from collections import Counter
from itertools import count

from switchgear import Breaker, BreakerParameters, CircuitOpen, Retry, RetryParameters
from switchgear.testing import FakeClock

CLIENTS = 100
CALLS = 5
"""Of each client, in each tick."""
TICK_SECONDS = 0.5


def fleet(clock: FakeClock, parameters: BreakerParameters) -> list[Breaker]:
    chance = random.Random(11)
    return [
        Breaker(f"client-{number}", parameters, clock=clock.monotonic, rng=chance.random)
        for number in range(CLIENTS)
    ]


def probes_by_tick(clock: FakeClock, breakers: list[Breaker], seconds: float) -> Counter[int]:
    """Return the number of clients' calls in each tick, after all failed at the same moment.

    Each client has calls to make in every tick, which last longer than the simulation.
    """
    for breaker in breakers:
        for _ in range(breaker.parameters.needed_calls):
            breaker.fail(breaker.admit(), ConnectionError("down"))
    arrived: Counter[int] = Counter()
    in_flight = []
    for tick in range(int(seconds / TICK_SECONDS)):
        clock.advance(TICK_SECONDS)
        for breaker in breakers:
            for _ in range(CALLS):
                try:
                    in_flight.append(breaker.admit())
                except CircuitOpen:
                    continue
                arrived[tick] += 1
    return arrived


def test_without_jitter_all_clients_come_at_the_same_moment_with_all_their_calls() -> None:
    clock = FakeClock()
    parameters = BreakerParameters(open_jitter=0.0, half_open_calls=1000, half_open_concurrent=1000)

    arrived = probes_by_tick(clock, fleet(clock, parameters), 45)

    assert max(arrived.values()) == CLIENTS * CALLS


def test_by_default_they_are_spread_and_send_one_probe_each() -> None:
    clock = FakeClock()

    arrived = probes_by_tick(clock, fleet(clock, BreakerParameters()), 45)

    assert sum(arrived.values()) == CLIENTS
    assert max(arrived.values()) < CLIENTS / 8
    assert max(arrived) - min(arrived) > 8 / TICK_SECONDS


def test_retries_are_spread_over_their_whole_pause() -> None:
    waits: list[float] = []
    chance = random.Random(12)
    numbers = count()
    retry = Retry(
        "herd",
        RetryParameters(attempts=2, base_seconds=1.0, budget_per_second=1000),
        sleep=waits.append,
        rng=chance.random,
    )

    @retry
    def fails_once() -> None:
        if next(numbers) % 2 == 0:
            raise ConnectionError("down")

    for _ in range(2 * CLIENTS):
        fails_once()

    in_tenths = Counter(int(wait * 10) for wait in waits)
    assert len(waits) == 2 * CLIENTS
    assert set(in_tenths) == set(range(10))
    assert max(in_tenths.values()) < CLIENTS / 2
