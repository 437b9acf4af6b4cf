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


def test_caller_runs_at_most_its_share_and_leaves_threads_to_others():
    async def steps():
        bulkhead = RequestBulkhead("test", LIMITS)
        return started(await running(bulkhead, ADA, ADA, ADA, KIM, KIM))

    assert run(steps) == [True, True, False, True, True]


def test_strangers_together_leave_threads_to_known_callers():
    async def steps():
        bulkhead = RequestBulkhead("test", LIMITS)
        return started(await running(bulkhead, STRANGER, OTHER, STRANGER, ADA))

    assert run(steps) == [True, True, False, True]


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


def test_request_that_gets_no_thread_in_time_is_refused():
    async def steps():
        bulkhead = RequestBulkhead("test", LIMITS)
        await running(bulkhead, ADA, ADA)
        with pytest.raises(Busy):
            await bulkhead.acquire(ADA)
        return started(await running(bulkhead, KIM))

    assert run(steps) == [True]


def test_caller_with_too_many_waiting_is_refused_at_once_and_others_are_not(monkeypatch):
    monkeypatch.setattr(module, "MAX_WAITING_EACH", 1)

    async def steps():
        bulkhead = RequestBulkhead("test", LIMITS)
        await running(bulkhead, ADA, ADA, ADA)
        with pytest.raises(TooManyRequests):
            await bulkhead.acquire(ADA)
        return started(await running(bulkhead, KIM))

    assert run(steps) == [True]


def test_waiting_strangers_leave_room_in_the_queue_for_known_callers(monkeypatch):
    monkeypatch.setattr(module, "MAX_WAITING_STRANGERS", 1)

    async def steps():
        bulkhead = RequestBulkhead("test", LIMITS)
        await running(bulkhead, STRANGER, STRANGER, OTHER)
        with pytest.raises(Busy):
            await bulkhead.acquire(OTHER)
        return started(await running(bulkhead, ADA))

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
