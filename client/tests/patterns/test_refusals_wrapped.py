"""A refusal is recognized when an SDK wraps it, or in a group with others."""

import concurrent.futures

import pytest

from switchgear.failures.classification import Catastrophic, FailureClass, classify, is_catastrophic
from switchgear.guards import SwitchEngaged
from switchgear.patterns.breaker import Breaker
from switchgear.patterns.fallback import Fallback
from switchgear.patterns.parameters import BreakerParameters, RetryParameters
from switchgear.patterns.retry import Retry
from switchgear.refusals import BulkheadFull, CircuitOpen, refusal_in

ANYTHING = (Exception,)


class APIConnectionError(Exception): ...


def wrapped(refusal, times=1):
    for _ in range(times):
        error = APIConnectionError("Connection error.")
        error.__cause__ = refusal
        refusal = error
    return refusal


def tries_of(error, retry_on=ANYTHING):
    calls = []

    def call():
        calls.append(1)
        raise error

    retry = Retry("a->b", RetryParameters(), retry_on=retry_on, sleep=lambda _: None)
    with pytest.raises(type(error)):
        retry(call)()
    return len(calls)


REFUSED = [
    wrapped(CircuitOpen("d")),
    wrapped(BulkheadFull("d", "queue is full"), times=3),
    ExceptionGroup("g", [CircuitOpen("d")]),
    ExceptionGroup("g", [wrapped(CircuitOpen("d")), SwitchEngaged("segment:finance")]),
    wrapped(ExceptionGroup("g", [ExceptionGroup("h", [CircuitOpen("d")])])),
]


@pytest.mark.parametrize("error", REFUSED)
def test_it_is_neither_tried_again_nor_counted(error):
    breaker = Breaker("d", BreakerParameters(failure_count=1))
    breaker.settle(breaker.admit(), error)

    assert tries_of(error) == 1
    assert breaker.state == "closed"
    assert breaker.counters.counted()["failure"] == 0
    assert classify(error) is FailureClass.CASCADING


def handled(refusal):
    try:
        try:
            raise refusal
        except Exception:
            raise APIConnectionError  # noqa: B904 - that is what this is about.
    except APIConnectionError as error:
        return error


@pytest.mark.parametrize(
    "error",
    [handled(CircuitOpen("d")), ExceptionGroup("g", [CircuitOpen("d"), ConnectionError()])],
    ids=["while handling it", "with another in a group"],
)
def test_error_not_raised_from_a_refusal_alone_is_a_failure(error):
    breaker = Breaker("d", BreakerParameters(failure_count=1))
    breaker.settle(breaker.admit(), error)

    assert breaker.state == "open"
    assert tries_of(error) == 3


@pytest.mark.parametrize(
    "error",
    [
        wrapped(SwitchEngaged("segment:finance", "leak"), times=2),
        ExceptionGroup("g", [SwitchEngaged("segment:finance"), ConnectionError()]),
        wrapped(ExceptionGroup("g", [SwitchEngaged("segment:finance"), ConnectionError()])),
    ],
)
def test_a_switch_that_is_wrapped_is_answered_by_a_fallback_only_with_leave(error):
    def call():
        raise error

    with pytest.raises(type(error)):
        Fallback("f", default="a stand-in")(call)()
    with pytest.raises(type(error)):
        Fallback("f", default="a stand-in", on=OSError)(call)()
    assert Fallback("f", default="a stand-in", on=OSError, on_switch=True)(call)() == "a stand-in"


@pytest.mark.parametrize(
    "inside", [Catastrophic("leak"), concurrent.futures.CancelledError(), wrapped(Catastrophic())]
)
def test_group_with_a_final_error_is_final(inside):
    error = ExceptionGroup("g", [ConnectionError(), ExceptionGroup("h", [inside])])

    assert tries_of(error) == tries_of(error, lambda _: True) == 1


def test_a_group_is_of_the_worst_class_in_it():
    timeouts = ExceptionGroup("g", [TimeoutError(), ConnectionResetError()])
    leak = ExceptionGroup("g", [timeouts, Catastrophic("leak")])

    assert classify(timeouts) is FailureClass.TRANSIENT
    assert classify(ExceptionGroup("g", [timeouts, KeyError()])) is FailureClass.PERSISTENT
    assert classify(ExceptionGroup("g", [KeyError(), CircuitOpen("d")])) is FailureClass.CASCADING
    assert classify(leak) is FailureClass.CATASTROPHIC
    assert is_catastrophic(leak)
    assert not is_catastrophic(timeouts)


def test_a_ring_of_causes_ends():
    error, group = APIConnectionError(), ExceptionGroup("g", [CircuitOpen("d"), ValueError()])
    error.__cause__, group.exceptions[1].__cause__ = group, error

    assert refusal_in(error) is None
    assert refusal_in(group) is None
    assert classify(error) is FailureClass.TRANSIENT
