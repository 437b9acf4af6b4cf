"""Timeouts and deadlines: cut off in coroutines, cooperative in plain functions."""

import asyncio
import pickle
import time

import pytest

from switchgear.patterns.deadline import Deadline, DeadlineExceeded, NoTimeLeft, left
from switchgear.patterns.timeout import CallTimeout, Timeout
from switchgear.refusals import Refused
from tests.patterns.clocks import Clock

LONG = 30.0


async def hang():
    await asyncio.sleep(LONG)


def took(coroutine):
    began = time.monotonic()
    with pytest.raises(TimeoutError) as late:
        asyncio.run(coroutine)
    assert time.monotonic() - began < LONG / 3
    return late.value


@pytest.mark.parametrize(("kind", "error"), [(Timeout, CallTimeout), (Deadline, DeadlineExceeded)])
def test_a_coroutine_is_cut_off(kind, error):
    async def block():
        async with kind(0.05):
            await hang()

    assert type(took(kind(0.05)(hang)())) is error
    assert took(block()).seconds == 0.05


def test_the_shorter_one_of_two_ends_it_and_says_which_it_was():
    assert type(took(Deadline(0.05)(Timeout(LONG)(hang))())) is DeadlineExceeded
    assert type(took(Deadline(LONG)(Timeout(0.05)(hang))())) is CallTimeout
    assert took(Deadline(0.05)(Deadline(LONG)(hang))()).seconds == 0.05


def test_outer_code_sees_the_deadline_error_and_no_cancellation():
    errors = []

    async def watched():
        try:
            await Timeout(None)(hang)()
        except BaseException as error:
            errors.append(type(error))
            raise

    took(Deadline(0.05)(watched)())
    assert errors == [DeadlineExceeded]


def test_the_task_goes_on_uncancelled():
    async def main():
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await Deadline(0.02)(Timeout(LONG)(hang))()
            with pytest.raises(TimeoutError):
                await Timeout(0.02)(hang)()
        await asyncio.sleep(0.05)
        return asyncio.current_task().cancelling()

    assert asyncio.run(main()) == 0


@pytest.mark.parametrize("kind", [Timeout, Deadline])
def test_a_cancellation_from_outside_stays_one(kind):
    async def main():
        task = asyncio.create_task(kind(LONG)(hang)())
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


@pytest.mark.parametrize("kind", [Timeout, Deadline])
def test_both_at_one_moment_are_a_cancellation(kind):
    async def main():
        entered = asyncio.Event()

        async def stubborn():
            entered.set()
            try:
                await hang()
            finally:  # Cut off, and while it cleans up it is cancelled, too.
                task.cancel()

        task = asyncio.create_task(kind(0.02)(stubborn)())
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_it_works_inside_and_around_asyncios_own():
    async def main():
        with pytest.raises(CallTimeout):
            async with asyncio.timeout(LONG):
                await Timeout(0.02)(hang)()
        with pytest.raises(TimeoutError) as outer:
            async with asyncio.timeout(0.02):
                await Timeout(LONG)(hang)()
        assert type(outer.value) is TimeoutError

    asyncio.run(main())


def test_an_error_or_a_result_in_time_is_given_as_it_is():
    async def fails():
        raise KeyError("mine")

    async def gives():
        return 7

    async def main():
        with pytest.raises(KeyError):
            await Timeout(LONG)(fails)()
        return await Deadline(LONG)(Timeout(LONG)(gives))()

    assert asyncio.run(main()) == 7
    assert left() is None


def test_a_task_that_is_begun_inside_is_cut_off_by_its_own_timeout_within_the_deadline():
    async def main():
        async with Deadline(0.1):
            task = asyncio.create_task(Timeout(LONG)(hang)())
            await asyncio.sleep(0)
        await task

    assert type(took(main())) is DeadlineExceeded


def test_a_task_that_outlives_a_deadline_is_not_bound_by_it():
    async def late():
        await asyncio.sleep(0.1)
        return left()

    async def main():
        async with Deadline(0.05):
            task = asyncio.create_task(late())
        return await task

    assert asyncio.run(main()) is None


def test_a_thousand_tasks_share_one_and_each_is_cut_off():
    timeout = Timeout(0.1)

    @timeout
    async def some(n):
        await asyncio.sleep(LONG if n % 2 else 0)
        return n

    async def main():
        return await asyncio.gather(*map(some, range(1000)), return_exceptions=True)

    found = asyncio.run(main())
    assert found[::2] == list(range(0, 1000, 2))
    assert {type(each) for each in found[1::2]} == {CallTimeout}


def test_left_shrinks_and_an_inner_one_never_exceeds_the_outer():
    clock = Clock()
    assert left() is None
    with Deadline(10, clock=clock):
        clock.goes(4)
        assert left() == 6
        with Timeout(60, clock=clock):
            assert left() == 6
        with Timeout(2, clock=clock):
            assert left() == 2
        clock.goes(7)
        assert left() == 0
    assert left() is None


def test_a_plain_call_is_not_begun_when_no_time_is_left():
    clock, calls = Clock(), []
    guarded = Timeout(None, clock=clock)(lambda: calls.append(1))
    with Deadline(1, clock=clock):
        clock.goes(1)
        with pytest.raises(NoTimeLeft) as refused:
            guarded()
    assert calls == []
    assert isinstance(refused.value, Refused)
    assert isinstance(refused.value, DeadlineExceeded)


@pytest.mark.parametrize("kind", [Timeout, Deadline])
def test_a_late_result_of_a_plain_call_is_not_thrown_away(kind):
    clock = Clock()

    def late():
        clock.goes(5)
        return "late"

    assert kind(1, clock=clock)(late)() == "late"


def test_a_timeout_of_any_kind_after_the_deadline_is_the_deadlines():
    clock = Clock()

    @Deadline(2, clock=clock)
    def time_out():
        clock.goes(2)
        raise TimeoutError("a socket's")

    with pytest.raises(DeadlineExceeded) as late:
        time_out()
    assert str(late.value.__cause__) == "a socket's"


def test_one_object_may_be_entered_again_inside():
    clock = Clock()
    deadline = Deadline(10, clock=clock)
    with deadline:
        clock.goes(3)
        with deadline:
            assert left() == 7
        assert left() == 7
    assert left() is None


def test_new_seconds_apply_to_later_calls():
    timeout = Timeout(1)
    timeout.configure(9)
    with timeout:
        assert 8 < left() <= 9


@pytest.mark.parametrize(
    ("seconds", "error"),
    [
        (0, ValueError),
        (-1, ValueError),
        (float("nan"), ValueError),
        (float("inf"), ValueError),
        ("1", TypeError),
        (True, TypeError),
    ],
)
def test_invalid_seconds_are_refused(seconds, error):
    for kind in (Timeout, Deadline):
        with pytest.raises(error, match="seconds must be"):
            kind(seconds)


@pytest.mark.parametrize(
    "error", [CallTimeout(1.5), DeadlineExceeded(2.0, 3, True), NoTimeLeft(2.0)]
)
def test_errors_come_whole_out_of_another_process(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), vars(again)) == (str(error), vars(error))
