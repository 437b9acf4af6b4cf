"""Bulkheads: bounded threads, fair queues, and threads that count until they are idle."""

import asyncio
import threading

import pytest

from controlplane import bulkhead as module
from controlplane.bulkhead import Limits, RequestBulkhead, RequestCaller
from controlplane.core.errors import Busy, TooManyRequests

ADA, KIM = RequestCaller("ada", known=True), RequestCaller("kim", known=True)
STRANGER, OTHER = RequestCaller("10.0.0.1", known=False), RequestCaller("10.0.0.2", known=False)
LIMITS = Limits(threads=4, each=2, strangers=2, wait_seconds=0.05)


async def running(bulkhead, *callers):
    """Start tasks that wait for a thread; return them once those with a thread have it."""
    tasks = [asyncio.ensure_future(bulkhead.acquire(caller)) for caller in callers]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


def started(tasks):
    return [task.done() and task.exception() is None for task in tasks]


def run(steps):
    return asyncio.run(steps())


@pytest.mark.parametrize(
    ("callers", "expected"),
    [
        pytest.param(
            (ADA, ADA, ADA, KIM, KIM), [True, True, False, True, True], id="share-of-a-caller"
        ),
        pytest.param(
            (STRANGER, OTHER, STRANGER, ADA), [True, True, False, True], id="share-of-strangers"
        ),
    ],
)
def test_callers_run_at_most_their_share_and_leave_threads_to_others(callers, expected):
    async def steps():
        return started(await running(RequestBulkhead("test", LIMITS), *callers))

    assert run(steps) == expected


def test_free_thread_goes_to_a_known_caller_before_a_stranger_who_came_first():
    async def steps():
        bulkhead = RequestBulkhead("test", Limits(threads=1, each=1, strangers=1, wait_seconds=2))
        (first,) = await running(bulkhead, ADA)
        waiting = await running(bulkhead, STRANGER, KIM)
        bulkhead.release(first.result())
        permit = await waiting[1]
        stranger_waits = not waiting[0].done()
        bulkhead.release(permit)
        await waiting[0]
        return stranger_waits

    assert run(steps)


@pytest.mark.parametrize(
    ("limit", "before", "refused", "error", "admitted"),
    [
        pytest.param(None, (ADA, ADA), ADA, Busy, KIM, id="no-thread-in-time"),
        pytest.param(
            "MAX_WAITING_EACH", (ADA, ADA, ADA), ADA, TooManyRequests, KIM, id="queue-of-a-caller"
        ),
        pytest.param(
            "MAX_WAITING_STRANGERS",
            (STRANGER, STRANGER, OTHER),
            OTHER,
            Busy,
            ADA,
            id="queue-of-strangers",
        ),
    ],
)
def test_caller_beyond_a_limit_is_refused_and_others_are_not(
    limit, before, refused, error, admitted, monkeypatch
):
    if limit is not None:
        monkeypatch.setattr(module, limit, 1)

    async def steps():
        bulkhead = RequestBulkhead("test", LIMITS)
        await running(bulkhead, *before)
        with pytest.raises(error):
            await bulkhead.acquire(refused)
        return started(await running(bulkhead, admitted))

    assert run(steps) == [True]


def test_thread_that_goes_on_after_its_request_counts_until_it_is_idle():
    async def steps():
        bulkhead = RequestBulkhead("test", Limits(threads=1, each=1, strangers=1, wait_seconds=5))
        permit = await bulkhead.acquire(ADA)
        stuck = threading.Event()
        asyncio.get_running_loop().run_in_executor(permit.executor, stuck.wait)
        bulkhead.release(permit)
        (waiting,) = await running(bulkhead, KIM)
        before = waiting.done()
        stuck.set()
        await waiting
        return before

    assert run(steps) is False


def test_cancelled_request_gives_its_place_in_the_queue_away():
    async def steps():
        bulkhead = RequestBulkhead("test", Limits(threads=1, each=1, strangers=1, wait_seconds=5))
        permit = await bulkhead.acquire(ADA)
        gone, waiting = await running(bulkhead, KIM, KIM)
        gone.cancel()
        await asyncio.sleep(0)
        bulkhead.release(permit)
        await waiting
        return gone.cancelled()

    assert run(steps)
