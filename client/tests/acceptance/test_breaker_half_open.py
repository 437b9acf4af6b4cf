"""The open time of a breaker, and the decision of its probes."""

import threading

import pytest

from switchgear import Breaker, BreakerParameters, CircuitOpen
from switchgear.patterns.breaker_rules import draw_open_seconds
from tests.acceptance.callee import Callee, Driven

FOUR = {
    "failure_count": 1,
    "open_seconds": 5,
    "half_open_calls": 4,
    "half_open_concurrent": 4,
    "slow_call_seconds": 4,
    "slow_call_rate": 0.5,
}
ONE = {"failure_count": 1, "half_open_calls": 1}
PATIENCE_SECONDS = 10.0


def test_open_breaker_probes_when_its_time_is_over_and_not_before():
    """resilience4j: CircuitBreakerStateMachineTest.shouldTransitionToHalfOpenAfterWaitDuration"""
    driven = Driven(**FOUR)
    driven.open()

    for _ in range(2):
        with pytest.raises(CircuitOpen):
            driven.call("s")
        driven.clock.goes(3)

    assert driven.call("s") == "half_open"


def test_open_time_grows_while_probes_fail():
    """resilience4j: CircuitBreakerStateMachineTest.shouldTransitionToHalfOpenAfterWaitInterval"""
    driven = Driven(**ONE, open_seconds=5, open_multiplier=1.5)
    driven.half_open()
    driven.call("f")

    driven.clock.goes(7)
    with pytest.raises(CircuitOpen):
        driven.call("s")
    driven.clock.goes(0.5)

    assert driven.call("s") == "closed"


@pytest.mark.parametrize(
    ("probes", "state"),
    [
        pytest.param(
            "ffsf", "open", id="shouldTransitionBackToOpenStateWhenFailureRateIsAboveThreshold"
        ),
        pytest.param(
            "SSSs", "open", id="shouldTransitionBackToOpenStateWhenSlowCallRateIsAboveThreshold"
        ),
        pytest.param(
            "fsss", "closed", id="shouldTransitionBackToClosedStateWhenFailureIsBelowThreshold"
        ),
        pytest.param("sssif", "closed", id="shouldReleasePermissionWhenExceptionIgnored"),
        pytest.param("iiiisss", "half_open", id="ignored probes decide nothing"),
        pytest.param("iiiissss", "closed", id="shouldIgnoreExceptionsAndThenTransitionToClosed"),
    ],
)
def test_probes_decide_together_when_all_are_done(probes, state):
    """resilience4j: CircuitBreakerStateMachineTest, by id"""
    driven = Driven(**FOUR)
    driven.half_open()

    assert driven.call(probes[:-1]) == "half_open"
    assert driven.call(probes[-1]) == state


def test_breaker_closed_by_probes_begins_with_an_empty_window():
    """resilience4j: CircuitBreakerStateMachineTest.shouldTransitionBackToClosedStateWhenFailureIsBelowThreshold
    Polly: CircuitBreakerSpecs.Should_reset_circuit_after_the_specified_duration_has_passed_if_the_next_call_does_not_raise_an_exception
    """
    driven = Driven(failure_count=2, half_open_calls=1)
    driven.half_open()

    assert driven.call("s") == "closed"

    assert driven.breaker.look().calls == 0
    assert driven.call("f") == "closed"
    assert driven.call("f") == "open"


def test_probe_that_fails_opens_at_once():
    """Polly: CircuitBreakerSpecs.Should_open_circuit_again_after_the_specified_duration_has_passed_if_the_next_call_raises_an_exception
    Finagle: FailureAccrualFactoryTest "a failing service should go back to the Busy state after probing fails"
    """
    driven = Driven(**ONE)
    driven.half_open()

    assert driven.call("f") == "open"

    with pytest.raises(CircuitOpen):
        driven.call("s")


def test_no_more_probes_are_admitted_than_decide():
    """resilience4j: CircuitBreakerStateMachineTest.shouldOnlyPermitFourCallsInHalfOpenState
    resilience4j: CircuitBreakerStateMachineTest.shouldIncreaseCounterOnReleasePermission
    """
    driven = Driven(**{**FOUR, "half_open_concurrent": 10})
    driven.half_open()
    permits = [driven.breaker.admit() for _ in range(4)]

    with pytest.raises(CircuitOpen) as refused:
        driven.breaker.admit()
    driven.breaker.release(permits[0])

    assert refused.value.retry_after == 0.0
    assert driven.breaker.admit() not in permits


def test_second_call_is_rejected_while_a_probe_runs():
    """Polly: CircuitBreakerSpecs.Should_only_allow_single_execution_on_first_entering_halfopen_state__integration_test
    Finagle: FailureAccrualFactoryTest "a failing service should only be able to accept one request after being revived, then multiple requests after it successfully completes"
    """
    driven = Driven(failure_count=1, half_open_calls=2)
    driven.half_open()
    began, may_end = threading.Event(), threading.Event()

    @driven.breaker
    def probe():
        began.set()
        assert may_end.wait(PATIENCE_SECONDS)

    running = threading.Thread(target=probe, daemon=True)
    running.start()
    assert began.wait(PATIENCE_SECONDS)
    with pytest.raises(CircuitOpen):
        driven.call("s")
    may_end.set()
    running.join(PATIENCE_SECONDS)

    assert driven.breaker.state == "half_open"
    assert driven.call("s") == "closed"
    assert driven.call("ss") == "closed"


def test_probe_that_hangs_keeps_others_out_until_its_limit():
    """Polly: CircuitBreakerSpecs.Should_allow_single_execution_per_break_duration_in_halfopen_state__test_execution_permit_directly

    Differs in that no second probe joins one that hangs, which would add load to what does not
    answer: `half_open_max_seconds` ends the wait by opening again, for as long as before.
    """
    driven = Driven(**ONE, open_seconds=60, half_open_max_seconds=150)
    driven.half_open()
    hanging = driven.breaker.admit()

    driven.clock.goes(120)
    with pytest.raises(CircuitOpen):
        driven.breaker.admit()
    driven.clock.goes(30)
    with pytest.raises(CircuitOpen) as refused:
        driven.breaker.admit()
    driven.breaker.succeed(hanging)

    assert driven.breaker.state == "open"
    assert refused.value.retry_after == 60


def test_failure_of_a_call_from_before_the_opening_is_dropped():
    """Polly: CircuitBreakerSpecs.Should_call_onbreak_when_breaking_circuit_first_time_but_not_for_subsequent_call_failure_which_arrives_on_open_state_though_started_on_closed_state"""
    driven = Driven(failure_count=1, open_seconds=60)
    late = driven.breaker.admit()
    driven.call("f")
    driven.clock.goes(30)

    driven.breaker.fail(late, ConnectionError("late"))

    assert driven.transitions == ["open"]
    with pytest.raises(CircuitOpen) as refused:
        driven.call("s")
    assert refused.value.retry_after == 30


def test_recovery_is_told_step_by_step():
    """Polly: CircuitBreakerSpecs.Should_call_onreset_when_automatically_closing_circuit_but_not_when_halfopen
    Polly: CircuitBreakerSpecs.Should_call_onhalfopen_when_automatically_transitioning_to_halfopen_due_to_state_read

    Differs in that reading the state changes nothing: a breaker is open until a call probes it.
    """
    driven = Driven(**ONE)
    driven.half_open()

    read = driven.breaker.state
    transitions = list(driven.transitions)
    driven.call("s")

    assert (read, transitions) == ("open", ["open"])
    assert driven.transitions == ["open", "half_open", "closed"]


def open_lengths(driven, times):
    """Return the open times of a breaker whose probe fails each time."""
    lengths = []
    driven.open()
    for _ in range(times):
        began, until = driven.clock.now, driven.breaker.look().open_until
        lengths.append(until - began)
        driven.clock.now = until
        driven.call("f")
    return lengths


def test_open_time_grows_to_five_minutes_and_no_further():
    """Finagle: FailureAccrualFactoryTest "a failing service should be revived on a backoff mechanism by default"
    Finagle: FailureAccrualFactoryTest "backoff should be 5 minutes when stream runs out"
    """
    driven = Driven(**ONE)

    lengths = open_lengths(driven, 8)

    assert lengths == pytest.approx([30, 45, 67.5, 101.25, 151.875, 227.8125, 300, 300])


def test_open_time_begins_anew_after_a_success():
    """Finagle: FailureAccrualFactoryTest "backoff time should be reset after a success" """
    driven = Driven(**ONE)
    open_lengths(driven, 3)
    driven.clock.now = driven.breaker.look().open_until
    assert driven.call("s") == "closed"

    assert open_lengths(driven, 2) == pytest.approx([30, 45])


@pytest.mark.parametrize(("drawn", "seconds"), [(0.0, 0.8), (0.5, 1.0), (1.0, 1.2)])
def test_open_time_is_spread(drawn, seconds):
    """Finagle: FailureAccrualFactoryTest "perturbs"

    Differs in that the time is also shortened, so that its mean is the one that is configured.
    """
    parameters = BreakerParameters(open_seconds=1, open_jitter=0.2)

    assert draw_open_seconds(parameters, 0, drawn) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "judge",
    [
        pytest.param(
            {"is_failure": Callee(RuntimeError("a mistake in the predicate"))},
            id="shouldNotLeakPermitWhenRecordExceptionPredicateThrowsInHalfOpen",
        ),
        pytest.param(
            {"is_failed_result": Callee(RuntimeError("a mistake in the predicate"))},
            id="shouldNotLeakPermitWhenRecordResultPredicateThrowsInHalfOpen",
        ),
    ],
)
def test_predicate_that_raises_costs_no_probe_and_no_answer(judge):
    """resilience4j: CircuitBreakerThrowingPredicateLeakTest, by id

    Differs in that the caller gets the outcome of the call and not what the predicate raised, and
    the call counts as failed.
    """
    driven = Driven()
    breaker = Breaker(
        "callee",
        BreakerParameters(**ONE, open_jitter=0, open_multiplier=1),
        clock=driven.clock,
        **judge,
    )
    outcome = KeyError("its own error") if "is_failure" in judge else "its own result"
    call = breaker(Callee(outcome))

    def ask():
        try:
            return call()
        except KeyError as error:
            return error

    outcomes = []
    for _ in range(3):
        outcomes.append(ask())
        assert breaker.state == "open"
        driven.clock.goes(30)

    assert outcomes == [outcome] * 3
