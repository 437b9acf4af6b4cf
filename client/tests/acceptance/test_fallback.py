"""Answers for calls that fail, and the failures that get none."""

import asyncio

import pytest

from switchgear import Fallback
from switchgear.patterns.caches import MemoryCache
from tests.acceptance.callee import Callee, away
from tests.patterns.clocks import Clock


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(
            {},
            id="FallbackTResultSpecs.Should_not_execute_fallback_when_executed_delegate_does_not_raise_fault",
        ),
        pytest.param(
            {"is_good": lambda value: value == "good"},
            id="FallbackResilienceStrategyTests.Handle_UnhandledResult_Ok",
        ),
    ],
)
def test_good_answer_needs_no_fallback(options):
    """Polly: by id"""
    target = Callee("instead")

    answer = Fallback("callee", target, **options).run(Callee("good"))

    assert (answer.value, answer.source, answer.is_partial) == ("good", "call", False)
    assert target.calls == []


@pytest.mark.parametrize(
    ("outcome", "options"),
    [
        pytest.param(away(), {}, id="Handle_Exception_Ok"),
        pytest.param("error", {"is_good": lambda it: it != "error"}, id="Handle_Result_Ok"),
    ],
)
def test_failure_is_answered_and_the_answer_labelled(outcome, options):
    """Polly: FallbackResilienceStrategyTests, by id

    Differs in that the answer says that it is one.
    """
    fallback = Fallback("callee", lambda: "secondary", **options)

    answer = fallback.run(Callee(outcome))

    assert answer.value == "secondary"
    assert answer.is_partial
    assert len(answer.causes) == 1
    assert fallback.counters.counted()["fallback"] == 1


def test_error_that_a_fallback_is_not_for_is_raised():
    """Polly: FallbackResilienceStrategyTests.Handle_UnhandledException_Ok"""
    error, target = away(), Callee("secondary")
    fallback = Fallback("callee", target, on=KeyError)

    with pytest.raises(ConnectionError) as raised:
        fallback(Callee(error))()

    assert raised.value is error
    assert target.calls == []
    assert fallback.counters.counted()["fallback"] == 0


def test_target_that_fails_leaves_the_error_of_the_call():
    """Polly: FallbackResilienceStrategyTests.Handle_Result_FallbackActionThrows

    Differs: the error of the call is raised, and a note says how the target failed.
    """
    error = away()

    def stale():
        raise KeyError("nothing kept")

    with pytest.raises(ConnectionError) as raised:
        Fallback("callee", stale)(Callee(error))()

    assert raised.value is error
    assert any("stale" in note and "nothing kept" in note for note in error.__notes__)


def test_bad_answer_of_a_target_is_not_given_either():
    """Polly: FallbackTResultSpecs.Should_not_handle_result_raised_by_fallback_delegate_even_if_is_result_handled_by_policy

    Differs: the answers of targets are judged too, and the next one is asked.
    """
    fallback = Fallback(
        "callee", lambda: "fault", lambda: "fine", is_good=lambda value: value != "fault"
    )

    answer = fallback.run(Callee("fault"))

    assert answer.value == "fine"
    assert len(answer.causes) == 2


def test_target_is_told_what_failed_and_with_which_arguments():
    """Polly: FallbackSpecs.Should_call_onFallback_passing_exception_triggering_fallback
    Polly: FallbackSpecs.Should_call_onFallback_with_independent_context_for_independent_calls
    """
    calls, errors = [], [away(), away()]
    callee = Callee(*errors)

    def instead(question, cause):
        calls.append((question, cause))

    @Fallback("callee", instead)
    def ask(question, tone):
        return callee()

    ask("a", tone="kind")
    ask("b", tone="loud")

    assert calls == [("a", errors[0]), ("b", errors[1])]


def test_cached_answer_stands_in_for_a_failure_and_for_nothing_else():
    """Polly: CacheSpecs.Should_execute_delegate_and_put_value_in_cache_if_cache_does_not_hold_value
    Polly: CacheSpecs.Should_return_value_from_cache_and_not_execute_delegate_if_prior_execution_has_cached
    Polly: CacheSpecs.Should_execute_delegate_and_put_value_in_cache_but_when_it_expires_execute_delegate_again

    Differs: the callee is always asked. A cached answer is for when it fails, is partial, and is
    gone when it is too old.
    """
    clock, callee = Clock(), Callee("first", "second", away())
    fallback = Fallback("callee", cache=MemoryCache(1800, clock=clock))

    fresh = [fallback.run(callee, "q").value for _ in range(2)]
    clock.goes(1799)
    kept = fallback.run(callee, "q")
    clock.goes(2)
    with pytest.raises(ConnectionError):
        fallback.run(callee, "q")

    assert fresh == ["first", "second"]
    assert (kept.value, kept.source, kept.is_partial) == ("second", "cache", True)
    assert len(callee.calls) == 4


def test_none_is_an_answer_that_is_kept():
    """Polly: CacheSpecs.Should_execute_delegate_and_put_value_in_cache_if_cache_does_not_hold_value__default_for_reference_type
    Polly: CacheSpecs.Should_return_value_from_cache_and_not_execute_delegate_if_cache_holds_value__default_for_reference_type
    """
    callee = Callee(None, away())
    fallback = Fallback("callee", cache=MemoryCache(60), default="default")

    fallback.run(callee)
    answer = fallback.run(callee)

    assert (answer.value, answer.source) == (None, "cache")


def test_key_of_the_cache_says_whose_answer_it_is():
    """Polly: CacheSpecs.Should_allow_custom_FuncCacheKeyStrategy"""
    callee = Callee("of kim", "of lee", away())
    call = Fallback("callee", cache=MemoryCache(60), cache_key=lambda user: user)(
        lambda user, at: callee()
    )

    fresh = [call("kim", at=1), call("lee", at=2)]
    kept = [call("kim", at=3), call("lee", at=4)]

    assert fresh == kept == ["of kim", "of lee"]


class Broken:
    """A cache that is away."""

    def get(self, key):
        raise OSError("no cache")

    def put(self, key, value):
        raise OSError("no cache")


def test_cache_that_fails_costs_no_answer():
    """Polly: CacheSpecs.Should_call_onError_delegate_if_cache_get_errors
    Polly: CacheSpecs.Should_call_onError_delegate_if_cache_put_errors
    """
    call = Fallback("callee", cache=Broken(), default="default")(Callee("fine", away()))

    assert call() == "fine"
    assert call() == "default"


def test_cancelled_call_is_neither_answered_nor_kept():
    """Polly: CacheSpecs.Should_honour_cancellation_during_delegate_execution_and_not_put_to_cache"""
    cache, callee = MemoryCache(60), Callee(asyncio.CancelledError(), away())
    fallback = Fallback("callee", cache=cache, default="default")

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(fallback(callee.later)())
    answer = asyncio.run(fallback.arun(callee.later))

    assert answer.source == "default"


@pytest.mark.parametrize(
    ("inside", "is_answered"),
    [
        pytest.param(
            [ConnectionError("a")],
            True,
            id="Should_execute_fallback_when_executed_delegate_throws_inner_of_aggregate_exception_handled_by_policy",
        ),
        pytest.param(
            [ExceptionGroup("inner", [ConnectionError("a")])],
            True,
            id="Should_execute_fallback_when_executed_delegate_throws_nested_inner_of_aggregate_exception_handled_by_policy",
        ),
        # Differs: one that is not for the fallback would be lost among the others.
        pytest.param(
            [ConnectionError("a"), KeyError("b")],
            False,
            id="Should_execute_fallback_when_executed_delegate_throws_aggregate_exception_with_inner_handled_by_policy_amongst_other_inners",
        ),
        pytest.param(
            [KeyError("b")],
            False,
            id="Should_not_execute_fallback_when_executed_delegate_throws_inner_of_aggregate_exception_not_handled_by_policy",
        ),
    ],
)
def test_group_is_answered_if_all_in_it_would_be(inside, is_answered):
    """Polly: FallbackSpecs, by id"""
    group = ExceptionGroup("failed", inside)
    call = Fallback("callee", on=ConnectionError, default="default")(Callee(group))

    if is_answered:
        assert call() == "default"
    else:
        with pytest.raises(ExceptionGroup) as raised:
            call()
        assert raised.value is group
