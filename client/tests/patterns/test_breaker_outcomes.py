"""The classification of outcomes: failures, successes, and calls that are not counted."""

import asyncio
import concurrent.futures
import logging
from typing import Any

import pytest

from switchgear.failures.classification import Catastrophic
from switchgear.guards import SwitchEngaged
from switchgear.patterns.breaker import Breaker
from switchgear.patterns.counters import Counters
from switchgear.patterns.parameters import BreakerParameters
from switchgear.refusals import BulkheadFull, CircuitOpen
from tests.patterns.clocks import Clock


class Unusual(Exception):
    pass


class ReadTimeout(Exception):
    """A timeout named like those of HTTP clients."""


def counted_after(breaker: Breaker, error: BaseException) -> dict[str, int]:
    """Return all counters above zero after a call that raised `error`."""

    @breaker
    def call() -> None:
        raise error

    with pytest.raises(type(error)):
        call()
    return {name: count for name, count in breaker.counters.counted().items() if count}


@pytest.mark.parametrize(
    "error",
    [
        CircuitOpen("inner"),
        BulkheadFull("inner", "queue is full"),
        SwitchEngaged("feature:x"),
        asyncio.CancelledError(),
        concurrent.futures.CancelledError(),
        GeneratorExit(),
        KeyboardInterrupt(),
        SystemExit(),
        Unusual(),
        ExceptionGroup("all", [Unusual(), CircuitOpen("inner")]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_outcomes_unrelated_to_the_dependency_are_not_counted(error: BaseException) -> None:
    breaker = Breaker("d", BreakerParameters(failure_count=1), ignore=(Unusual,))

    assert counted_after(breaker, error) == {}
    assert breaker.look().calls == 0


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("no"), {"failure": 1}),
        (TimeoutError(), {"timeout": 1}),
        (ReadTimeout(), {"timeout": 1}),
        (ExceptionGroup("some", [ValueError(), CircuitOpen("inner")]), {"failure": 1}),
    ],
    ids=lambda each: type(each).__name__,
)
def test_failures_are_counted_by_kind(error: Exception, expected: dict[str, int]) -> None:
    breaker = Breaker("d", BreakerParameters(failure_count=1))

    assert counted_after(breaker, error) == expected
    assert breaker.state == "open"


class Answered(Exception):
    def __init__(self, status: int) -> None:
        self.response = type("Response", (), {"status_code": status})()


class Leaked(Catastrophic):
    status_code = 403


def test_unknown_users_do_not_open_the_breaker_for_all() -> None:
    breaker = Breaker("d")

    for _ in range(20):
        assert counted_after(breaker, Answered(404))["success"]

    assert breaker.state == "closed"
    assert breaker.look().failure_rate == 0


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 499])
def test_client_error_is_an_answer_as_for_the_transport(status: int) -> None:
    assert counted_after(Breaker("d"), Answered(status)) == {"success": 1}


@pytest.mark.parametrize(
    "error",
    [
        Answered(408),
        Answered(429),
        Answered(500),
        Answered(302),
        Answered(200),
        Leaked(),
        ExceptionGroup("some", [Answered(404), Answered(503)]),
        ExceptionGroup("all", [Leaked()]),
    ],
    ids=repr,
)
def test_other_errors_with_a_status_are_failures(error: Exception) -> None:
    assert counted_after(Breaker("d"), error) == {"failure": 1}


@pytest.mark.parametrize(
    "group",
    [
        ExceptionGroup("all", [Answered(404), Answered(422)]),
        ExceptionGroup("with a refusal", [Answered(404), CircuitOpen("inner")]),
    ],
    ids=str,
)
def test_group_of_client_errors_is_an_answer(group: Exception) -> None:
    assert counted_after(Breaker("d"), group) == {"success": 1}


def test_client_error_is_a_failure_if_the_code_says_so() -> None:
    breaker = Breaker("d", is_failure=lambda error: True)

    assert counted_after(breaker, Answered(404)) == {"failure": 1}


def test_an_error_that_is_no_failure_counts_as_a_success() -> None:
    breaker = Breaker("d", is_failure=lambda error: not isinstance(error, KeyError))

    assert counted_after(breaker, KeyError("unknown user")) == {"success": 1}
    assert counted_after(breaker, ValueError("no")) == {"success": 1, "failure": 1}
    assert breaker.look().calls == 2


def test_a_result_that_is_a_failure_is_counted_and_returned() -> None:
    breaker = Breaker(
        "d", BreakerParameters(failure_count=2), is_failed_result=lambda value: value >= 500
    )

    @breaker
    def call(status: int) -> int:
        return status

    @breaker
    async def acall(status: int) -> int:
        return status

    assert [call(200), call(503), asyncio.run(acall(500))] == [200, 503, 500]
    counted = breaker.counters.counted()
    assert (counted["success"], counted["failure"]) == (1, 2)
    with pytest.raises(CircuitOpen, match="a result that counts as a failure"):
        call(200)


def test_a_question_that_fails_is_logged_and_counts_as_a_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(_: Any) -> bool:
        raise RuntimeError("a defect")

    breaker = Breaker("d", is_failure=broken, is_failed_result=broken)
    with caplog.at_level(logging.ERROR, "switchgear"):
        assert counted_after(breaker, ValueError("no")) == {"failure": 1}
        assert breaker(lambda: 5)() == 5

    assert breaker.counters.counted()["failure"] == 2
    assert [record.exc_info is not None for record in caplog.records] == [True, True]


def test_slow_is_strictly_longer_and_counted_beside() -> None:
    clock = Clock()
    parameters = BreakerParameters(slow_call_seconds=2, minimum_calls=4, slow_call_rate=0.5)
    breaker = Breaker("d", parameters, clock=clock)

    @breaker
    def call(seconds: float, error: Exception | None = None) -> None:
        clock.goes(seconds)
        if error is not None:
            raise error

    call(2)
    call(2.5)
    with pytest.raises(ValueError, match="no"):
        call(3, ValueError("no"))
    counted = breaker.counters.counted()
    assert (counted["success"], counted["failure"], counted["slow"]) == (2, 1, 2)
    assert breaker.state == "closed"
    call(0)
    assert breaker.state == "open"


def test_rejection_has_retry_after_and_the_last_failure() -> None:
    clock = Clock()
    parameters = BreakerParameters(failure_count=1, open_jitter=0, open_seconds=30)
    breaker = Breaker("core->oracle", parameters, clock=clock)
    counted_after(breaker, ValueError("x" * 10_000))
    clock.goes(10)

    with pytest.raises(CircuitOpen) as caught:
        breaker.admit()

    assert (caught.value.dependency, caught.value.retry_after) == ("core->oracle", 20.0)
    assert caught.value.last_failure is not None
    assert caught.value.last_failure.startswith("ValueError: xxx")
    assert len(caught.value.last_failure) == 200
    assert breaker.counters.counted()["rejected"] == 1


def test_counters_can_be_shared() -> None:
    counters = Counters()
    for name in ("one", "other"):
        breaker = Breaker(name, counters=counters)
        breaker.succeed(breaker.admit())

    assert counters.counted()["success"] == 2


def test_an_outcome_of_an_older_generation_is_a_total_and_no_more() -> None:
    clock = Clock()
    parameters = BreakerParameters(failure_count=1, open_seconds=1, half_open_calls=1)
    breaker = Breaker("d", parameters, clock=clock)
    early = [breaker.admit() for _ in range(3)]
    breaker.fail(early[0], None)
    clock.goes(2)
    probe = breaker.admit()

    breaker.succeed(early[1])
    assert breaker.state == "half_open"
    breaker.succeed(probe)
    assert breaker.state == "closed"
    breaker.fail(early[2], None)

    assert (breaker.state, breaker.look().calls) == ("closed", 0)
    assert breaker.counters.counted()["failure"] == 2


def test_a_call_that_does_well_reads_no_clock() -> None:
    clock = Clock()
    breaker = Breaker("d", clock=clock)
    call = breaker(lambda: None)
    reads = clock.reads

    for _ in range(200):
        call()

    assert clock.reads == reads
