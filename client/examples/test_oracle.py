"""Example tests of retries and breakers, without real waiting."""

import pytest

from switchgear import BreakerParameters, CircuitOpen, RetryParameters
from switchgear.testing import Console, FakeClock, no_wait

BREAKER = BreakerParameters(failure_count=8, open_seconds=30, open_jitter=0, half_open_calls=1)


def down() -> str:
    raise ConnectionError("no route to host")


def test_oracle_is_asked_four_times() -> None:
    policy = Console().client().policy("core->oracle", retry=RetryParameters(attempts=4))

    with no_wait(), pytest.raises(ConnectionError):  # back-offs are skipped, no time passes
        policy.run(down)

    assert policy.counters.counted()["retry"] == 3


def test_oracle_is_left_alone_for_half_a_minute() -> None:
    clock = FakeClock()
    gear = Console(clock).client()
    policy = gear.policy("core->oracle", retry=RetryParameters(attempts=4), breaker=BREAKER)

    for _ in range(2):
        with pytest.raises(ConnectionError):
            policy.run(down)  # back-offs advance the clock instead of waiting
    assert clock.monotonic() > 0
    with pytest.raises(CircuitOpen):
        policy.run(lambda: "an answer")

    clock.advance(30)
    assert policy.run(lambda: "an answer").value == "an answer"
    assert policy.breaker.state == "closed"
