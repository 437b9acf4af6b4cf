"""Retried failures, the number of attempts, and the final outcome."""

import asyncio

import pytest

from switchgear import (
    BulkheadFull,
    CircuitOpen,
    Retry,
    RetryParameters,
    SwitchEngaged,
    journal,
)
from switchgear.patterns.counters import Counters
from switchgear.patterns.retry_budget import RetryBudget
from tests.acceptance.callee import Callee, away
from tests.patterns.clocks import Clock

AT_ONCE = RetryParameters(base_seconds=0)


class Rated:
    """A response that asks to be left alone for a while."""

    def __init__(self, seconds):
        self.headers = {"Retry-After": str(seconds)}


def test_failing_call_is_made_three_times_and_its_own_error_raised():
    """resilience4j: SupplierRetryTest.shouldReturnAfterThreeAttempts"""
    error, slept = away(), []
    callee = Callee(error)

    with pytest.raises(ConnectionError) as raised:
        Retry(sleep=slept.append)(callee)()

    assert raised.value is error
    assert len(callee.calls) == 3
    assert len(slept) == 2


def test_one_attempt_is_no_retry():
    """resilience4j: SupplierRetryTest.shouldReturnAfterOneAttempt"""
    slept, callee = [], Callee(away())

    with pytest.raises(ConnectionError):
        Retry("callee", RetryParameters(attempts=1), sleep=slept.append)(callee)()

    assert len(callee.calls) == 1
    assert slept == []


@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param({"retry_on": (ValueError,)}, id="stamina: test_sync.py::test_wrong_exception"),
        pytest.param(
            {"retry_on": lambda error: not isinstance(error, ConnectionError)},
            id="resilience4j: SupplierRetryTest.shouldReturnAfterOneAttemptAndIgnoreException",
        ),
        pytest.param(
            {"retry_on": (Exception,), "never": (ConnectionError,)},
            id="resilience4j: SupplierRetryTest.shouldIgnoreExceptionOfDecoratedTry",
        ),
    ],
)
def test_error_that_is_not_for_retries_is_raised_at_once(kinds):
    """By id"""
    slept, callee = [], Callee(away())

    with pytest.raises(ConnectionError):
        Retry(sleep=slept.append, **kinds)(callee)()

    assert len(callee.calls) == 1
    assert slept == []


@pytest.mark.parametrize(
    "refusal",
    [
        CircuitOpen("callee"),
        BulkheadFull("callee", "limit of 1"),
        SwitchEngaged("feature:chat", "data leaks"),
    ],
    ids=lambda refusal: type(refusal).__name__,
)
def test_call_that_was_refused_inside_is_not_made_again(refusal):
    """Finagle: RequeueFilterTest "Requeueable.unapply for non-retryable exceptions"
    Finagle: RetryFilterTest "when failed with a Non-Retryable failure, fail immediately"

    Differs from "Requeueable.unapply for retryable exceptions" and from PendingRequestFilterTest:
    Finagle sends what was rejected to another host. Here the same breaker, bulkhead or switch would
    be asked again, and retries would queue up before it.
    """
    callee = Callee(refusal)

    with pytest.raises(type(refusal)):
        Retry("callee", AT_ONCE, retry_on=(Exception,))(callee)()

    assert len(callee.calls) == 1


def test_result_that_stays_bad_is_given_when_the_attempts_are_used_up():
    """resilience4j: SupplierRetryTest.shouldRetryWithResult
    Finagle: RetryFilterTest "return result when the retry strategy is exhausted"
    """
    callee = Callee("no", "no", "still no")

    result = Retry("callee", AT_ONCE, retry_result=lambda it: "no" in it)(callee)()

    assert result == "still no"
    assert len(callee.calls) == 3


def test_errors_and_bad_results_use_up_the_same_attempts():
    """resilience4j: SupplierRetryTest.shouldReturnAfterThreeAttemptsAndRecoverWithResult"""
    callee = Callee(away(), "no", away(), "never asked")

    with pytest.raises(ConnectionError):
        Retry("callee", AT_ONCE, retry_result=lambda it: it == "no")(callee)()

    assert len(callee.calls) == 3


def test_wait_follows_what_the_result_asks_for():
    """resilience4j: SupplierRetryTest.shouldUseBackoffBiFunctionWhenRetryWithResult

    Differs in that `Retry-After` is read without a function for it, and spread by a tenth, since
    all clients were told the same moment.
    """
    slept, callee = [], Callee(Rated(10), Rated(20), "fine")
    retry = Retry(
        "callee", AT_ONCE, retry_result=lambda it: isinstance(it, Rated), sleep=slept.append
    )

    assert retry(callee)() == "fine"

    first, second = slept
    assert 10 <= first <= 11
    assert 20 <= second <= 22


def test_hook_is_told_of_each_retry_before_its_wait():
    """Polly: RetryResilienceStrategyTests.OnRetry_EnsureCorrectArguments
    Polly: RetryResilienceStrategyTests.RetryException_RetryCount_Respected

    Differs in that attempts are counted from 1, and `attempts` are those in all: MaxRetryAttempts
    of 3 are 4 attempts.
    """
    error, order, states = away(), [], []

    def record_state(state):
        order.append("hook")
        states.append(state)

    def sleep(seconds):
        order.append(seconds)

    retry = Retry("callee", RetryParameters(attempts=4), on_retry=record_state, sleep=sleep)

    with pytest.raises(ConnectionError):
        retry(Callee(error))()

    assert [state.attempt for state in states] == [1, 2, 3]
    assert all(state.error is error for state in states)
    assert order == [each for state in states for each in ("hook", state.wait_seconds)]


def test_hook_is_told_how_long_it_took_so_far():
    """Polly: RetryResilienceStrategyTests.OnRetry_EnsureExecutionTime

    Differs in that the time of all attempts is told, not of the last one.
    """
    clock, states = Clock(), []
    retry = Retry("callee", AT_ONCE, on_retry=states.append, clock=clock)

    @retry
    def ask():
        clock.goes(60)
        raise away()

    with pytest.raises(ConnectionError):
        ask()

    assert [state.elapsed_seconds for state in states] == [60, 120]


def test_task_cancelled_while_it_waits_makes_no_other_attempt():
    """Polly: RetryResilienceStrategyTests.ExecuteAsync_CancellationRequestedAfterCallback_EnsureNotRetried"""
    callee = Callee(away())

    async def main():
        waits = asyncio.Event()

        async def sleep(seconds):
            waits.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(Retry(sleep=sleep)(callee.later)())
        await waits.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return task.cancelled()

    assert asyncio.run(main())
    assert len(callee.calls) == 1


def test_call_that_was_cancelled_is_not_made_again():
    """Polly: RetryResilienceStrategyTests.ExecuteAsync_CancellationRequested_EnsureNotRetried"""
    callee = Callee(asyncio.CancelledError(), "never asked")

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(Retry("callee", AT_ONCE, retry_on=(BaseException,))(callee.later)())

    assert len(callee.calls) == 1


def test_budget_ends_the_retries_before_the_attempts_do():
    """Finagle: RetryFilterTest "respects RetryBudget"

    Differs from resilience4j's BudgetRetryImplTest.shouldStopRetryWhenFailureRatioExceedsBudget:
    the caller gets the error of the call, with a note, and no other one.
    """
    clock, callee, counters, events = Clock(), Callee(away()), Counters(), []
    remove = journal.add_hook(lambda entry: events.append(entry.name))
    retry = Retry(
        "callee",
        RetryParameters(attempts=10, base_seconds=0),
        budget=RetryBudget(rate=0, per_second=0.2, clock=clock),  # Over ten seconds, two.
        counters=counters,
        clock=clock,
    )

    with pytest.raises(ConnectionError) as raised:
        retry(callee)()
    remove()

    assert len(callee.calls) == 3
    assert counters.counted()["retry"] == 2
    assert events.count("retry_budget_exhausted") == 1
    assert "gave up: budget" in raised.value.__notes__[-1]


@pytest.mark.parametrize(
    ("per_second", "rate", "retries"),
    [
        pytest.param(0, 0, 0, id="Empty"),
        pytest.param(0, 0.01, 100, id="apply minRetriesPerSec=0 (0.01)"),
        pytest.param(0, 0.1, 1000, id="apply minRetriesPerSec=0 (0.1)"),
        pytest.param(0, 0.75, 7500, id="apply minRetriesPerSec=0 (0.75)"),
        pytest.param(0, 0.999, 9990, id="apply minRetriesPerSec=0 (0.999)"),
        pytest.param(10, 0, 100, id="apply with minRetries and maxPercentOver=0"),
        pytest.param(5, 0.5, 5050, id="apply with minRetries and maxPercentOver"),
    ],
)
def test_budget_is_a_share_of_the_calls_and_a_reserve(per_second, rate, retries):
    """Finagle: RetryBudgetTest, by id

    Differs in that the budget reaches back over ten seconds, and not over a `ttl`.
    """
    budget, taken = RetryBudget(rate, per_second, clock=Clock()), 0

    for _ in range(10_000):
        budget.record_call()
        taken += budget.take()

    assert taken == retries


def test_budget_may_be_larger_than_the_calls():
    """Finagle: RetryBudgetTest "apply minRetries=0 maxPercentOver greater than 1.0" """
    budget = RetryBudget(2.0, 0, clock=Clock())

    before = budget.take()
    for _ in range(100):
        budget.record_call()
    taken = sum(budget.take() for _ in range(1000))

    assert not before
    assert taken == 200
