"""Breakers that probe at the next call."""

from switchgear.patterns.breaker import Breaker
from switchgear.patterns.parameters import BreakerParameters
from tests.patterns.clocks import Clock


def half_open_soon(*, calls: int = 5, concurrent: int = 1, clock: Clock | None = None) -> Breaker:
    clock = clock or Clock()
    parameters = BreakerParameters(
        failure_count=1, open_seconds=1, open_jitter=0, half_open_calls=calls,
        half_open_concurrent=concurrent,
    )  # fmt: skip
    breaker = Breaker("d", parameters, clock=clock)
    breaker.fail(breaker.admit(), None)
    clock.goes(1)
    return breaker
