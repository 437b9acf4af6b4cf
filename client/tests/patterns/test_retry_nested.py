"""Nested retries: each failure is retried by one of them."""

import asyncio
import contextvars
import threading

import pytest

from switchgear.failures.classification import retry_summary
from switchgear.patterns.parameters import RetryParameters
from switchgear.patterns.retry import Retry
from switchgear.patterns.retry_budget import RetryBudget
from switchgear.patterns.retry_state import RetryCallState


class JobError(Exception):
    pass


class Slow(Exception):
    status_code = 503
    retry_after = 20


def retry_of(name="inner", **given):
    return Retry(name, sleep=lambda seconds: None, clock=lambda: 0.0, **given)


def failing(error, calls):
    def call():
        calls.append(1)
        raise error

    return call


def plainly(retry, function):
    return retry(function)()


def in_coroutine(retry, function):
    async def later():
        return function()

    return asyncio.run(retry(later)())


def in_loop(retry, function):
    for attempt in retry:
        with attempt:
            attempt.result = function()
    return attempt.result


def in_async_loop(retry, function):
    async def main():
        async for attempt in retry:
            async with attempt:
                attempt.result = function()
        return attempt.result

    return asyncio.run(main())


every_way = pytest.mark.parametrize("ask", [plainly, in_coroutine, in_loop, in_async_loop])


@every_way
def test_an_error_that_the_outer_one_does_not_retry_is_retried_by_the_inner_one(ask):
    calls = []
    job = retry_of("job", retry_on=(JobError,))

    with pytest.raises(ConnectionError) as failed:
        job(lambda: ask(retry_of(), failing(ConnectionError("away"), calls)))()

    assert len(calls) == 3
    assert retry_summary(failed.value).attempts == 3


@every_way
def test_an_error_that_both_retry_is_retried_by_the_outer_one_alone(ask):
    calls, notes = [], []

    @retry_of("job")
    def job():
        try:
            ask(retry_of(), failing(ConnectionError("away"), calls))
        except ConnectionError as error:
            notes.extend(error.__notes__)
            raise

    with pytest.raises(ConnectionError) as failed:
        job()

    assert len(calls) == 3
    assert notes == ["switchgear: 1 attempt in 0.0 s, not retried here; the retry job retries"] * 3
    assert failed.value.__notes__ == ["switchgear: 3 attempts in 0.0 s, gave up: attempts"]


def test_three_levels_that_all_retry_make_three_calls():
    calls = []
    stack = failing(ConnectionError("away"), calls)
    for name in ("inner", "middle", "outer"):
        stack = retry_of(name)(stack)

    with pytest.raises(ConnectionError):
        stack()

    assert len(calls) == 3


def test_outermost_of_three_retries_errors_that_the_middle_one_does_not():
    calls = []
    middle = retry_of("middle", retry_on=(JobError,))
    stack = retry_of("outer")(middle(retry_of()(failing(ConnectionError("away"), calls))))

    with pytest.raises(ConnectionError):
        stack()

    assert len(calls) == 3


def test_after_errors_of_its_own_the_inner_one_leaves_the_last_to_the_outer_one():
    errors = [ConnectionError("1"), ConnectionError("2"), JobError("3"), ConnectionError("4")]
    calls = []

    @retry_of("job", retry_on=(JobError,))
    @retry_of(retry_on=(ConnectionError, JobError))
    def call():
        calls.append(1)
        if errors:
            raise errors.pop(0)
        return "fine"

    assert call() == "fine"
    assert len(calls) == 5


@pytest.mark.parametrize(
    "outer",
    [
        {"budget": RetryBudget(0, 0)},
        {"never": (Slow,)},
        {"parameters": RetryParameters(retry_after_max_seconds=10)},
        {"retry_on": lambda error: error.unknown},
    ],
)
def test_an_outer_one_that_would_give_up_at_once_leaves_it_to_the_inner_one(outer):
    calls = []

    with pytest.raises(Slow):
        retry_of("outer", **outer)(retry_of()(failing(Slow(), calls)))()

    assert len(calls) == 3


def test_an_outer_one_that_has_spent_the_budget_on_this_call_has_had_its_retries():
    calls = []
    outer = retry_of("outer", budget=RetryBudget(0, 0.2))

    with pytest.raises(ConnectionError):
        outer(retry_of()(failing(ConnectionError("away"), calls)))()

    assert len(calls) == 3


@pytest.mark.parametrize("of_outer", [None, lambda n: n == "bad"])
@every_way
def test_a_result_is_retried_by_one_of_them(ask, of_outer):
    given = []

    def bad():
        given.append(1)
        return "bad"

    inner = retry_of(retry_result=lambda n: n == "bad")
    outer = retry_of("outer", retry_result=of_outer)

    assert outer(lambda: ask(inner, bad))() == "bad"
    assert len(given) == 3


def test_a_task_of_an_attempt_leaves_its_errors_to_the_retry_around_it():
    calls = []

    @retry_of("outer")
    async def outer():
        async def inner():
            return plainly(retry_of(), failing(ConnectionError("away"), calls))

        return await asyncio.create_task(inner())

    with pytest.raises(ConnectionError):
        asyncio.run(outer())

    assert len(calls) == 3


def test_a_context_that_outlives_an_attempt_retries_by_itself():
    calls, kept = [], []
    retry_of("outer")(lambda: kept.append(contextvars.copy_context()))()

    def run():
        with pytest.raises(ConnectionError):
            kept[0].run(retry_of()(failing(ConnectionError("away"), calls)))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

    assert len(calls) == 3


def test_an_outer_one_of_a_single_attempt_leaves_all_to_the_inner_one():
    calls = []
    message = RetryCallState(retry_of("message", parameters=RetryParameters(attempts=1)))

    message.enter()
    with pytest.raises(ConnectionError):
        retry_of()(failing(ConnectionError("away"), calls))()
    message.leave()

    assert len(calls) == 3


def test_the_same_retry_within_itself_retries_once():
    calls, retry = [], retry_of()

    with pytest.raises(ConnectionError):
        retry(retry(failing(ConnectionError("away"), calls)))()

    assert len(calls) == 3


@pytest.mark.parametrize(
    ("errors", "calls"),
    [
        ([ConnectionError()], 3),
        ([ConnectionError(), TimeoutError()], 3),
        ([ExceptionGroup("inner", [ConnectionError()]), TimeoutError()], 3),
        ([ConnectionError(), ValueError()], 1),
        ([ExceptionGroup("inner", [ValueError()]), TimeoutError()], 1),
    ],
)
@pytest.mark.parametrize("retry_on", [None, (OSError,), lambda error: error.errno is None])
def test_a_group_is_retried_if_each_member_is(errors, calls, retry_on):
    made = []

    with pytest.raises(ExceptionGroup):
        retry_of(retry_on=retry_on)(failing(ExceptionGroup("both", errors), made))()

    assert len(made) == calls


def test_a_group_is_not_retried_if_one_member_never_is():
    made = []
    group = ExceptionGroup("both", [ConnectionError(), KeyError()])

    with pytest.raises(ExceptionGroup):
        retry_of(retry_on=(Exception,), never=(KeyError,))(failing(group, made))()

    assert len(made) == 1


def test_the_longest_retry_after_of_a_group_is_waited_for():
    waits = []
    errors = [ExceptionGroup("both", [ConnectionError(), Slow()])]

    @Retry(rng=lambda: 0.0, sleep=waits.append)
    def call():
        if errors:
            raise errors.pop()
        return "fine"

    assert call() == "fine"
    assert waits == [20.0]
