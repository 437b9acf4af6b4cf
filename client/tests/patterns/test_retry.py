"""The errors that are retried, the number of attempts, and the pauses."""

import asyncio
import concurrent.futures
import inspect

import pytest

from switchgear import journal
from switchgear.failures.classification import retry_summary
from switchgear.patterns.counters import Counters
from switchgear.patterns.deadline import Deadline, DeadlineExceeded
from switchgear.patterns.parameters import RetryParameters
from switchgear.patterns.retry import Retry
from switchgear.patterns.retry_budget import RetryBudget
from switchgear.refusals import BulkheadFull, CircuitOpen
from tests.patterns.clocks import Clock


class Coded(Exception):
    def __init__(self, code=None, status_code=None, retry_after=None):
        self.code, self.status_code, self.retry_after = code, status_code, retry_after


class Dependency:
    """A dependency that raises each of `errors` in turn, then returns "fine".

    It records its arguments and the waits.
    """

    def __init__(self, *errors, **given):
        self.errors = list(errors)
        self.calls, self.waits = [], []
        given = {"rng": lambda: 1.0, "sleep": self.waits.append, **given}
        self.retry = Retry("a->b", **given)

    def __call__(self, *args, **kwargs):
        self.calls.append((args, kwargs))
        if self.errors:
            raise self.errors.pop(0)
        return "fine"

    async def later(self, *args, **kwargs):
        return self(*args, **kwargs)


def plainly(dependency, *args):
    return dependency.retry(dependency)(*args)


def in_coroutine(dependency, *args):
    return asyncio.run(dependency.retry(dependency.later)(*args))


def in_loop(dependency, *args):
    for attempt in dependency.retry:
        with attempt:
            return dependency(*args)
    raise AssertionError("neither a result nor an error")


def in_async_loop(dependency, *args):
    async def main():
        async for attempt in dependency.retry:
            async with attempt:
                return await dependency.later(*args)
        raise AssertionError("neither a result nor an error")

    return asyncio.run(main())


every_way = pytest.mark.parametrize("ask", [plainly, in_coroutine, in_loop, in_async_loop])


@every_way
def test_it_is_tried_three_times_in_all_with_full_jitter(ask):
    dependency = Dependency(TimeoutError(), ConnectionError())
    assert ask(dependency) == "fine"
    assert len(dependency.calls) == 3
    assert dependency.waits == [0.1, 0.2]


@every_way
def test_the_last_error_is_raised_itself_and_says_how_often_it_was_tried(ask):
    errors = [ConnectionError(n) for n in range(3)]
    dependency = Dependency(*errors)
    with pytest.raises(ConnectionError) as failed:
        ask(dependency)
    assert failed.value is errors[2]
    assert "3 attempts" in failed.value.__notes__[0]
    assert (retry_summary(failed.value).attempts, retry_summary(failed.value).why) == (
        3,
        "attempts",
    )


@every_way
@pytest.mark.parametrize(
    "error",
    [
        ValueError(),
        CircuitOpen("b", 1.0),
        BulkheadFull("b", "queue is full"),
        asyncio.CancelledError(),
        concurrent.futures.CancelledError(),
        KeyboardInterrupt(),
        Coded(status_code=404),
        Coded("content_policy_violation", 503),
        Coded("insufficient_quota", 429),
        Coded("context_length_exceeded", 400),
    ],
    ids=repr,
)
def test_persistent_error_is_tried_once(ask, error):
    dependency = Dependency(error)
    with pytest.raises(type(error)):
        ask(dependency)
    assert len(dependency.calls) == 1
    assert not hasattr(error, "__notes__")


@pytest.mark.parametrize(
    "error",
    [Coded(status_code=status) for status in (408, 429, 500, 502, 503, 504)]
    + [Coded("model_overloaded"), Coded("rate_limit_exceeded"), TimeoutError(), ConnectionError()],
)
def test_transient_error_is_retried(error):
    assert plainly(Dependency(error)) == "fine"


@pytest.mark.parametrize("ask", [plainly, in_coroutine])
def test_too_long_call_is_retried_once_truncated(ask):
    long = [Coded("context_length_exceeded", 400) for _ in range(2)]
    dependency = Dependency(long[0], truncate=lambda args, kwargs: ((args[0][:3],), kwargs))
    assert ask(dependency, "abcdef") == "fine"
    assert [args for args, _ in dependency.calls] == [("abcdef",), ("abc",)]
    assert dependency.waits == [0.0]

    twice = Dependency(*long, truncate=lambda args, kwargs: (args, kwargs))
    with pytest.raises(Coded):
        ask(twice, "abcdef")
    assert len(twice.calls) == 2


def test_loop_attempt_reports_truncation():
    dependency = Dependency(Coded("context_length_exceeded", 400), truncate=lambda *both: both)
    truncates = []
    for attempt in dependency.retry:
        truncates.append(attempt.truncates)
        with attempt:
            dependency()
    assert truncates == [False, True]


def test_own_retry_on_decides_and_never_wins():
    by_class = Dependency(KeyError(), retry_on=(LookupError,))
    by_function = Dependency(KeyError("soon"), retry_on=lambda error: "soon" in str(error))
    never = Dependency(KeyError(), retry_on=(LookupError,), never=(KeyError,))
    by_name = Dependency(KeyError(), parameters=RetryParameters(retry_on=("LookupError",)))

    assert [plainly(each) for each in (by_class, by_function, by_name)] == ["fine"] * 3
    with pytest.raises(KeyError):
        plainly(never)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_result_may_be_tried_again_and_the_last_one_is_returned(is_async):
    given = []

    def empty():
        given.append(len(given))
        return given[-1]

    async def later():
        return empty()

    retry = Retry(retry_result=lambda n: n < 5, sleep=lambda seconds: None)
    assert (asyncio.run(retry(later)()) if is_async else retry(empty)()) == 2
    assert given == [0, 1, 2]


def test_a_loop_may_show_its_result():
    retry = Retry(retry_result=lambda n: n < 1, sleep=lambda seconds: None)
    for n, attempt in enumerate(retry):
        with attempt:
            attempt.result = n
    assert (n, attempt.number) == (1, 2)


@every_way
def test_retry_after_is_honoured_with_a_little_more_and_up_to_its_cap(ask):
    dependency = Dependency(Coded(status_code=429, retry_after=20))
    assert ask(dependency) == "fine"
    assert dependency.waits == [22.0]

    too_long = Dependency(Coded(status_code=429, retry_after=30.1))
    with pytest.raises(Coded) as failed:
        ask(too_long)
    assert too_long.waits == []
    assert retry_summary(failed.value).why == "retry_after"


@every_way
def test_an_inner_retry_is_suppressed(ask):
    inner = Dependency(*[ConnectionError() for _ in range(50)])
    outer = Dependency()
    outer.retry = Retry("outer", sleep=lambda seconds: None)

    def through():
        return plainly(inner)

    with pytest.raises(ConnectionError):
        outer.retry(through)()
    assert len(inner.calls) == 3

    with pytest.raises(ConnectionError):  # And afterwards it tries again itself.
        ask(inner)
    assert len(inner.calls) == 6


@every_way
def test_after_a_call_another_retry_is_at_work(ask):
    ask(Dependency())
    after = Dependency(ConnectionError())
    assert ask(after) == "fine"


def test_loop_left_early_ends_the_retry():
    async def main():
        async for attempt in Retry():
            async with attempt:
                break
        dependency = Dependency(ConnectionError())
        return await dependency.retry(dependency.later)()

    for attempt in Retry():
        with attempt:
            break
    assert plainly(Dependency(ConnectionError())) == "fine"
    assert asyncio.run(main()) == "fine"


def test_a_task_that_outlives_a_retry_tries_again_itself():
    async def main():
        dependency = Dependency(ConnectionError())

        async def background():
            await asyncio.sleep(0.02)
            return await dependency.retry(dependency.later)()

        @Retry()
        async def begins():
            return asyncio.create_task(background())

        return await (await begins())

    assert asyncio.run(main()) == "fine"


@every_way
def test_wait_beyond_the_deadline_is_not_begun(ask):
    clock = Clock()
    dependency = Dependency(ConnectionError(), ConnectionError())
    with Deadline(0.15, clock=clock), pytest.raises(ConnectionError) as failed:
        ask(dependency)
    assert dependency.waits == [0.1]
    assert retry_summary(failed.value).why == "deadline"


def test_a_timeout_because_of_retries_says_so():
    clock = Clock()

    @Deadline(5, clock=clock)
    @Retry(sleep=clock.goes, rng=lambda: 1.0)
    def slow():
        clock.goes(3)
        raise TimeoutError

    with pytest.raises(DeadlineExceeded) as late:
        slow()
    assert (late.value.attempts, late.value.caused_by_retrying) == (2, True)


def test_a_deadline_cuts_a_pause_off():
    dependency = Dependency(ConnectionError(), sleep=lambda seconds: asyncio.sleep(30))
    with pytest.raises(DeadlineExceeded) as late:
        asyncio.run(Deadline(0.3)(dependency.retry(dependency.later))())
    assert late.value.caused_by_retrying


@every_way
def test_a_budget_ends_it_and_says_so_once(ask):
    entries = []
    remove = journal.add_hook(entries.append)
    try:
        budget = RetryBudget(0.0, 0.1)
        dependency = Dependency(*[ConnectionError() for _ in range(9)], budget=budget)
        for _ in range(3):
            with pytest.raises(ConnectionError) as failed:
                ask(dependency)
    finally:
        remove()
    assert len(dependency.calls) == 4
    assert retry_summary(failed.value).why == "budget"
    assert [each.name for each in entries] == ["call_retried", "retry_budget_exhausted"]


@every_way
def test_every_retry_is_counted_and_reported(ask):
    entries, states, counters = [], [], Counters()
    remove = journal.add_hook(entries.append)
    try:
        error = ConnectionError()
        ask(Dependency(error, TimeoutError(), counters=counters, on_retry=states.append))
    finally:
        remove()
    assert counters.counted()["retry"] == 2
    assert [each.fields["attempt"] for each in entries] == [1, 2]
    assert entries[0].fields == {"attempt": 1, "wait_seconds": 0.1, "error": "ConnectionError"}
    assert (states[0].attempt, states[0].wait_seconds, states[0].error) == (1, 0.1, error)


def test_failing_hook_does_not_affect_the_retry():
    assert plainly(Dependency(ConnectionError(), on_retry=lambda state: 1 / 0)) == "fine"


def test_new_parameters_hold_for_the_next_failure():
    dependency = Dependency(*[ConnectionError() for _ in range(4)])
    dependency.retry.configure(RetryParameters(attempts=5, backoff="linear", base_seconds=1))
    assert plainly(dependency) == "fine"
    assert dependency.waits == [1, 2, 3, 4]


def test_single_attempt_leaves_retries_to_inner_layers():
    inner = Dependency(ConnectionError())
    outer = Retry(parameters=RetryParameters(attempts=1))
    assert outer(lambda: plainly(inner))() == "fine"


def test_kind_and_signature_stay():
    retry = Retry()

    class Service:
        @retry
        def plain(self, a: int, *, b: str = "x") -> str:
            """Says something."""
            return f"{a}{b}"

        @retry
        async def later(self, a: int) -> int:
            return a

    assert list(inspect.signature(Service.plain).parameters) == ["self", "a", "b"]
    assert Service.plain.__doc__ == "Says something."
    assert inspect.iscoroutinefunction(Service.later)
    assert (Service().plain(1, b="y"), asyncio.run(Service().later(2))) == ("1y", 2)


def test_a_generator_can_not_be_tried_again():
    def numbers():
        yield 1

    with pytest.raises(TypeError, match="generator"):
        Retry()(numbers)


def test_a_thousand_tasks_share_one_retry():
    counters = Counters()
    retry = Retry(
        parameters=RetryParameters(base_seconds=0.001),
        counters=counters,
        budget=RetryBudget(1.0, 1000.0),
    )

    async def main():
        async def some(n):
            tries = []

            @retry
            async def flaky():
                tries.append(n)
                await asyncio.sleep(0)
                if len(tries) < 3:
                    raise ConnectionError
                return n

            return await flaky(), len(tries)

        return await asyncio.gather(*map(some, range(1000)))

    assert asyncio.run(main()) == [(n, 3) for n in range(1000)]
    assert counters.counted()["retry"] == 2000
