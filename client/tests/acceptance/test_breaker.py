"""Opening a breaker: thresholds, counted outcomes, and the modes that override it."""

import traceback

import pytest

from switchgear import Breaker, BreakerParameters, CircuitOpen, journal
from switchgear.patterns.generation import IllegalTransition
from switchgear.patterns.state_machine import BreakerStateMachine
from tests.acceptance.callee import Callee, Driven
from tests.patterns.clocks import Clock

FIVE = {"window_size": 5, "minimum_calls": 5}
TEN_SECONDS = {"window_type": "time", "window_size": 10, "minimum_calls": 4}


def test_failure_rate_reached_by_a_success_opens():
    """resilience4j: CircuitBreakerStateMachineTest.shouldOpenAfterFailureRateThresholdExceeded

    Differs from Polly: AdvancedCircuitBreakerSpecs.Should_not_open_circuit_if_failure_threshold_and_minimum_threshold_is_equalled_but_last_call_is_success
    The rate is evaluated after every outcome, so the last call that is needed may have succeeded.
    """
    driven = Driven(**FIVE)

    assert driven.call("fffs") == "closed"
    assert driven.breaker.look().failure_rate is None
    assert driven.call("s") == "open"

    assert driven.breaker.look().failure_rate == 0.6
    with pytest.raises(CircuitOpen):
        driven.call("s")
    assert driven.breaker.counters.counted()["rejected"] == 1


def test_slow_call_rate_opens_whether_the_slow_calls_fail_or_not():
    """resilience4j: CircuitBreakerStateMachineTest.shouldOpenAfterSlowCallRateThresholdExceeded"""
    driven = Driven(**FIVE, slow_call_seconds=4, slow_call_rate=0.5)

    assert driven.call("FSfs") == "closed"
    assert driven.call("S") == "open"

    assert driven.breaker.look().slow_rate == 0.6
    assert driven.breaker.counters.counted()["slow"] == 3


def test_full_window_forgets_the_oldest_calls():
    """resilience4j: CircuitBreakerMetricsTest.testCircuitBreakerMetrics"""
    driven = Driven(window_size=10, minimum_calls=10)
    driven.breaker.force("forced_closed")  # Counts, and never opens.

    driven.call("ssff")
    few = driven.breaker.look()
    driven.call("ffffssss")
    full = driven.breaker.look()
    driven.call("sss")
    later = driven.breaker.look()

    assert (few.calls, few.failure_rate) == (4, None)
    assert (full.calls, full.failure_rate) == (10, 0.6)
    assert (later.calls, later.failure_rate) == (10, 0.3)


@pytest.mark.parametrize(
    ("seconds_and_outcomes", "state"),
    [
        pytest.param(
            [(0, "fff"), (9.999, "f")],
            "open",
            id="Should_open_circuit_with_the_last_raised_exception_if_failure_threshold_equalled_and_throughput_threshold_equalled_even_if_only_just_within_timeslice",
        ),
        pytest.param(
            [(0, "ssf"), (10, "f")],
            "closed",
            id="Should_not_open_circuit_if_failure_threshold_exceeded_but_throughput_threshold_not_met_before_timeslice_expires_even_if_timeslice_expires_only_exactly",
        ),
        pytest.param(
            [(0, "s"), (9.999, "ssf"), (10, "f")],
            "open",
            id="Should_open_circuit_if_failures_at_end_of_last_timeslice_below_failure_threshold_and_failures_in_beginning_of_new_timeslice_where_total_equals_failure_threshold",
        ),
        pytest.param(
            [(0, "s"), (9.999, "ff"), (10, "f")],
            "closed",
            id="Should_not_open_circuit_if_failures_at_end_of_last_timeslice_and_failures_in_beginning_of_new_timeslice_when_below_minimum_throughput_threshold",
        ),
        pytest.param(
            [(0, "sssf")],
            "closed",
            id="Should_not_open_circuit_if_failure_threshold_not_met_but_throughput_threshold_met_before_timeslice_expires",
        ),
    ],
)
def test_time_window_holds_the_calls_of_its_seconds(seconds_and_outcomes, state):
    """Polly: AdvancedCircuitBreakerSpecs, by id"""
    driven = Driven(**TEN_SECONDS)
    began = driven.clock.now

    for seconds, outcomes in seconds_and_outcomes:
        driven.clock.now = began + seconds
        driven.call(outcomes)

    assert driven.breaker.state == state


@pytest.mark.parametrize(
    ("outcomes", "state"),
    [
        pytest.param("sff", "closed", id="below"),
        pytest.param("sfff", "open", id="Consective failures policy: fail on nth attempt"),
        pytest.param(
            "sfsff",
            "closed",
            id="Consecutive failures policy: failures reset to zero on success",
        ),
        pytest.param("sfsfff", "open", id="as many after the success"),
    ],
)
def test_consecutive_failures_open(outcomes, state):
    """Finagle: FailureAccrualPolicyTest, by id

    Differs in that a row alone opens nothing below `minimum_calls`.
    """
    driven = Driven(minimum_calls=1, failure_rate=1, consecutive_failures=3)

    assert driven.call(outcomes) == state


def test_too_few_calls_open_nothing_however_many_fail():
    """Finagle: FailureAccrualPolicyTest "Success rate policy markDeadOnFailure() doesn't return Some(Duration) until min requests" """
    driven = Driven(minimum_calls=5)

    assert driven.call("ffff") == "closed"
    assert driven.call("f") == "open"


def test_rejection_says_what_failed_last_and_calls_nobody():
    """Polly: AdvancedCircuitBreakerSpecs.Should_open_circuit_blocking_executions_and_noting_the_last_raised_exception_if_failure_threshold_exceeded_and_throughput_threshold_equalled_within_timeslice_in_same_window

    Differs in that the text of the last failure is kept and not the exception, which would keep its
    frames alive as long as the breaker is open.
    """
    clock = Clock()
    breaker = Breaker("callee", BreakerParameters(failure_count=1, open_jitter=0), clock=clock)
    failing, working = Callee(ConnectionError("away")), Callee("fine")
    with pytest.raises(ConnectionError):
        breaker(failing)()
    clock.goes(10)

    with pytest.raises(CircuitOpen) as refused:
        breaker(working)()

    assert refused.value.last_failure == "ConnectionError: away"
    assert refused.value.retry_after == 20
    assert refused.value.__cause__ is None
    assert working.calls == []


def test_many_rejections_keep_nothing_of_the_earlier_ones():
    """Polly: CircuitStateControllerTests.OnActionPreExecute_CircuitOpened_EnsureExceptionStackTraceDoesNotGrow"""
    driven = Driven(failure_count=1)
    driven.open()
    tracebacks = []

    for _ in range(100):
        try:
            driven.call("s")
        except CircuitOpen as refusal:
            tracebacks.append("".join(traceback.format_exception(refusal)))

    assert len(tracebacks) == 100
    assert len(set(tracebacks)) == 1


def test_exception_that_is_no_failure_counts_as_success_and_an_ignored_one_for_nothing():
    """resilience4j: CircuitBreakerExceptionHandlingTest.shouldRecordRuntimeExceptionAsFailureAndBusinessExceptionAsSuccess
    resilience4j: CircuitBreakerExceptionHandlingTest.shouldIgnoreNumberFormatException
    """
    breaker = Breaker(
        "callee", ignore=(ValueError,), is_failure=lambda error: not isinstance(error, KeyError)
    )
    call = breaker(Callee(RuntimeError("failed"), KeyError("nobody"), ValueError("ignored")))

    for kind in (RuntimeError, KeyError, ValueError):
        with pytest.raises(kind):
            call()

    counted = breaker.counters.counted()
    assert (counted["failure"], counted["success"], breaker.look().calls) == (1, 1, 2)


def test_result_that_is_bad_counts_as_failure_and_is_given_to_the_caller():
    """resilience4j: CircuitBreakerResultHandlingTest.shouldRecordSpecificStringResultAsAFailureAndAnyOtherAsSuccess"""
    breaker = Breaker("callee", is_failed_result=lambda result: result == "failure")
    call = breaker(Callee("success", "failure"))

    results = [call(), call()]

    counted = breaker.counters.counted()
    assert results == ["success", "failure"]
    assert (counted["success"], counted["failure"]) == (1, 1)


@pytest.mark.parametrize(
    ("mode", "state", "calls"),
    [
        pytest.param("disabled", "closed", 0, id="shouldDisableCircuitBreaker"),
        pytest.param("forced_closed", "closed", 6, id="shouldForceCloseCircuitBreaker"),
        pytest.param("metrics_only", "closed", 6, id="shouldRecordMetricsInMetricsOnlyState"),
    ],
)
def test_mode_that_never_opens_admits_every_call(mode, state, calls):
    """resilience4j: CircuitBreakerStateMachineTest, by id

    Differs in that a mode lies over the state, which is shown as closed, and is no state itself.
    """
    driven = Driven(**{**FIVE, "window_size": 10})
    driven.breaker.force(mode)

    driven.call("fffffs")

    status = driven.breaker.look()
    assert (status.mode, status.state, status.calls) == (mode, state, calls)
    assert driven.transitions == []


def test_breaker_that_only_measures_says_once_that_it_would_have_opened():
    """resilience4j: CircuitBreakerStateMachineTest.shouldPublishEachEventOnceInMetricOnlyState

    Differs in that the failure rate and the slow call rate share one event, as one breaker opens
    once.
    """
    driven = Driven(**FIVE, slow_call_seconds=4, slow_call_rate=0.5)
    driven.breaker.force("metrics_only")
    events = []
    remove = journal.add_hook(lambda event: events.append(event.name))

    driven.call("FFFFFFF")
    remove()

    assert events == ["circuit_breaker_would_open"]
    assert driven.breaker.look().would_open


def test_breaker_forced_open_stays_so_whatever_time_passes():
    """resilience4j: CircuitBreakerStateMachineTest.shouldForceOpenCircuitBreaker
    Polly: CircuitBreakerSpecs.Should_hold_circuit_open_despite_elapsed_time_if_manual_override_open
    """
    driven = Driven()
    driven.breaker.force("forced_open")

    for seconds in (0, 3600):
        driven.clock.goes(seconds)
        with pytest.raises(CircuitOpen) as refused:
            driven.call("s")
        assert refused.value.retry_after is None

    assert driven.breaker.state == "open"
    assert driven.breaker.counters.counted()["rejected"] == 2


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(
            lambda breaker: breaker.reset(),
            id="Should_be_able_to_reset_automatically_opened_circuit_without_specified_duration_passing",
        ),
        pytest.param(
            lambda breaker: (breaker.force("forced_open"), breaker.unforce()),
            id="Should_close_circuit_again_on_reset_after_manual_override",
        ),
    ],
)
def test_breaker_that_was_reset_is_closed_and_knows_nothing_of_before(end):
    """Polly: CircuitBreakerSpecs, by id
    resilience4j: CircuitBreakerStateMachineTest.shouldResetToClosedState
    resilience4j: CircuitBreakerStateMachineTest.shouldResetMetrics
    """
    driven = Driven(**FIVE)
    driven.open()

    end(driven.breaker)

    assert driven.breaker.look().calls == 0
    assert driven.call("ffff") == "closed"


def test_transition_that_makes_no_sense_is_refused():
    """resilience4j: CircuitBreakerStateMachineTest.shouldNotAllowTransitionFromClosedToHalfOpen

    Differs in that callers can't move a breaker to a state: its machine alone does, and refuses.
    """
    machine = BreakerStateMachine(BreakerParameters(), Clock(), lambda: 0.5)

    with pytest.raises(IllegalTransition, match="closed to half_open"):
        machine.transition("half_open", 1.0, "a test")

    assert machine.generation.state == "closed"


def test_change_to_the_same_state_is_no_event():
    """resilience4j: CircuitBreakerStateMachineTest.circuitBreakerDoesNotPublishStateTransitionEventsForInternalTransitions"""
    driven = Driven()

    driven.breaker.reset()
    driven.breaker.force("disabled")
    driven.breaker.force("forced_open")
    driven.breaker.force("forced_open")
    driven.breaker.reset()
    driven.breaker.reset()

    assert driven.transitions == ["open", "closed"]


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"failure_rate": 0}, id="Should_throw_if_failure_threshold_is_zero"),
        pytest.param(
            {"failure_rate": -0.5}, id="Should_throw_if_failure_threshold_is_less_than_zero"
        ),
        pytest.param(
            {"failure_rate": 1.01}, id="Should_throw_if_failure_threshold_is_greater_than_one"
        ),
        pytest.param(
            {"minimum_calls": 0}, id="Should_throw_if_minimum_throughput_is_less_than_one"
        ),
        pytest.param(
            {"open_seconds": -1}, id="Should_throw_if_duration_of_break_is_less_than_zero"
        ),
        # Differs: an open time of nothing would be no breaker.
        pytest.param(
            {"open_seconds": 0}, id="Should_be_able_to_handle_a_duration_of_break_of_zero"
        ),
    ],
)
def test_parameter_that_makes_no_sense_is_named(wrong):
    """Polly: AdvancedCircuitBreakerSpecs, by id"""
    (name,) = wrong

    with pytest.raises(ValueError, match=name):
        BreakerParameters(**wrong)
