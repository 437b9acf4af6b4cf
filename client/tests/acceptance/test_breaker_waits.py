"""Half-open breakers with the default of `half_open_max_seconds`: for test_breaker_half_open.py."""

import pytest

from switchgear import CircuitOpen
from tests.acceptance.callee import Driven


def test_half_open_breaker_waits_for_calls_however_long():
    """resilience4j: CircuitBreakerStateMachineTest.circuitBreakerTransitionsToOpenAfterWaitDurationInHalfOpenState

    Differs: a lack of calls never opens a breaker again. `half_open_max_seconds` bounds probes in
    flight, and is off by default.
    """
    driven = Driven(failure_count=1, half_open_calls=2)
    driven.half_open()
    driven.call("s")

    driven.clock.goes(86_400)

    assert driven.breaker.state == "half_open"
    assert driven.call("s") == "closed"


def test_half_open_breaker_waits_for_its_probe_however_long():
    """Polly: CircuitBreakerSpecs.Should_allow_single_execution_per_break_duration_in_halfopen_state__integration_test

    Differs: no second probe joins one that is slow, and by default nothing ends the wait for it.
    """
    driven = Driven(failure_count=1, half_open_calls=1)
    driven.half_open()
    slow = driven.breaker.admit()

    driven.clock.goes(3600)
    with pytest.raises(CircuitOpen):
        driven.breaker.admit()
    driven.breaker.succeed(slow)

    assert driven.breaker.state == "closed"
