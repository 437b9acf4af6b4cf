"""Patterns around one another, and policies that an operator can force."""

import pytest

from switchgear import (
    Breaker,
    BreakerParameters,
    CircuitOpen,
    Fallback,
    Policy,
    Retry,
    RetryParameters,
)
from switchgear.patterns.counters import Counters
from switchgear.patterns.retry_budget import RetryBudget
from switchgear.testing import Console
from tests.acceptance.callee import Callee, away
from tests.patterns.clocks import Clock


def two_layers(budgets, counters, callee):
    """A retry of up to five attempts around another one, as a service that calls one that calls."""
    front, middle = (
        Retry(
            "callee",
            RetryParameters(attempts=5, base_seconds=0),
            budget=budget,
            counters=counted,
        )
        for budget, counted in zip(budgets, counters, strict=True)
    )
    return front(middle(callee))


@pytest.mark.parametrize("is_breaker_inside", [True, False])
def test_order_decides_what_a_breaker_sees_of_retries(is_breaker_inside):
    """Polly: PolicyWrapSpecs.Wrapping_two_policies_by_instance_syntax_and_executing_should_wrap_outer_then_inner_around_delegate"""
    retry = Retry("callee", RetryParameters(attempts=2, base_seconds=0))
    breaker = Breaker("callee", BreakerParameters(failure_count=2))
    callee = Callee(away())
    call = retry(breaker(callee)) if is_breaker_inside else breaker(retry(callee))

    with pytest.raises(ConnectionError):
        call()

    assert len(callee.calls) == 2
    assert breaker.state == ("open" if is_breaker_inside else "closed")


def test_policy_puts_the_breaker_inside_of_the_retries():
    """Polly: PolicyWrapSpecs.Wrapping_two_policies_by_static_syntax_and_executing_should_wrap_outer_then_inner_around_delegate

    Differs in that the order of a policy is fixed.
    """
    callee = Callee(away())
    policy = Policy(
        "core->oracle",
        breaker=BreakerParameters(failure_count=2),
        retry=RetryParameters(attempts=5, base_seconds=0),
    )

    with pytest.raises(CircuitOpen) as refused:
        policy(callee)()

    assert len(callee.calls) == 2
    assert refused.value.last_failure == "ConnectionError: away"


def test_layers_of_retries_make_no_more_calls_than_one():
    """Finagle: RetriesTest "moduleWithRetryPolicy end to end to end without RetryBudget"

    Differs: five attempts in each of two layers are 25 calls there. Here the inner layer leaves to
    the outer one what that retries.
    """
    callee, counters = Callee(away()), (Counters(), Counters())
    endless = [RetryBudget(rate=10, per_second=1_000_000, clock=Clock()) for _ in range(2)]
    call = two_layers(endless, counters, callee)

    for _ in range(100):
        with pytest.raises(ConnectionError):
            call()

    front, middle = (each.counted()["retry"] for each in counters)
    assert (front, middle, len(callee.calls)) == (400, 0, 500)


@pytest.mark.parametrize("is_shared", [False, True], ids=["of each layer", "shared"])
def test_layers_of_retries_stay_within_one_budget(is_shared):
    """Finagle: RetriesTest "moduleWithRetryPolicy end to end to end with RetryBudget" """
    clock = Clock()
    budgets = [RetryBudget(rate=0.2, per_second=0, clock=clock) for _ in range(2)]
    if is_shared:
        budgets[1] = budgets[0]
    callee, counters = Callee(away()), [Counters(), Counters()]
    call = two_layers(budgets, counters, callee)

    for _ in range(100):
        with pytest.raises(ConnectionError):
            call()

    assert sum(each.counted()["retry"] for each in counters) == 20
    assert len(callee.calls) == 120


def test_fallback_answers_when_the_retries_are_used_up():
    """resilience4j: SupplierRetryTest.shouldReturnAfterThreeAttemptsAndRecover"""
    callee, slept = Callee(away()), []
    call = Fallback("callee", default="recovered")(Retry(sleep=slept.append)(callee))

    assert call() == "recovered"

    assert len(callee.calls) == 3
    assert len(slept) == 2


def test_functions_of_one_breaker_open_it_together():
    """Polly: IssuesTests.CircuitBreakerStateSharing_959"""
    clock = Clock()
    breaker = Breaker(
        "callee",
        BreakerParameters(minimum_calls=10, failure_rate=1, open_jitter=0, half_open_calls=1),
        is_failed_result=lambda result: result in (-1, "error"),
        clock=clock,
    )
    numbers, words = breaker(Callee(*[-1] * 5, 0)), breaker(Callee(*["error"] * 5, "valid"))

    for _ in range(5):
        numbers()
        words()
    for each in (numbers, words):
        with pytest.raises(CircuitOpen):
            each()
    clock.goes(30)

    assert (numbers(), words()) == (0, "valid")


@pytest.mark.parametrize("is_ended", [False, True])
def test_override_from_before_a_policy_was_made_holds_for_it(is_ended):
    """Polly: CircuitBreakerManualControlTests.IsolateAsync_NotInitialized_Ok"""
    console, callee = Console(), Callee("fine")
    gear = console.client()
    console.force("core->oracle", "forced_open")
    if is_ended:
        console.unforce("core->oracle")

    call = gear.policy("core->oracle")(callee)

    if is_ended:
        assert call() == "fine"
    else:
        with pytest.raises(CircuitOpen):
            call()
        assert callee.calls == []


def test_override_reaches_every_policy_of_the_name():
    """Polly: CircuitBreakerManualControlTests.Initialize_Twice_Ok"""
    console = Console()
    first, second = console.client(), console.client()
    calls = [gear.policy("core->oracle")(Callee("fine")) for gear in (first, first, second)]

    console.force("core->oracle", "forced_open")
    for call in calls:
        with pytest.raises(CircuitOpen):
            call()
    console.unforce("core->oracle")

    assert [call() for call in calls] == ["fine"] * 3
