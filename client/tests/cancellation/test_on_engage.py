"""Calls that run already when their switch is engaged: they finish, or are cancelled on request."""

import asyncio
import threading
import time

import pytest

from switchgear import Fallback, RetryParameters, SwitchEngaged, cancel_token
from switchgear.testing import Console

SOON_SECONDS = 5.0
FOREVER_SECONDS = 60.0


@pytest.fixture
def console() -> Console:
    return Console()


def refused_soon(make_call, engage):
    """The refusal that ends a call, which engages once it runs."""

    async def main():
        began = asyncio.Event()
        task = asyncio.create_task(make_call(began))
        await asyncio.wait_for(began.wait(), SOON_SECONDS)
        await asyncio.to_thread(engage)
        with pytest.raises(SwitchEngaged) as refused:
            await asyncio.wait_for(task, SOON_SECONDS)
        return refused.value

    return asyncio.run(main())


def hanging(ends):
    async def call(began):
        try:
            began.set()
            await asyncio.sleep(FOREVER_SECONDS)
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise

    return call


def test_running_coroutine_finishes_by_default(console):
    gear = console.client()

    @gear.guard(feature="chat")
    async def ask():
        console.engage("feature:chat")
        await asyncio.sleep(0.01)
        return "well"

    assert asyncio.run(ask()) == "well"


def test_running_coroutine_is_cancelled_on_request(console):
    ends = []
    guard = console.client().guard(feature="chat", on_engage="cancel")

    refusal = refused_soon(
        guard(hanging(ends)), lambda: console.engage("feature:chat", reason="data leaks")
    )

    assert (refusal.switch, refusal.reason) == ("feature:chat", "data leaks")
    assert ends == ["cancelled"]


def test_running_block_is_cancelled_on_request(console):
    guard = console.client().guard(feature="chat", on_engage="cancel")

    async def ask(began):
        async with guard:
            began.set()
            await asyncio.sleep(FOREVER_SECONDS)

    assert refused_soon(ask, lambda: console.engage("feature:chat")).switch == "feature:chat"


def test_running_policy_is_cancelled_and_nothing_counts_as_a_failure(console):
    ends = []
    policy = console.client().policy(
        "core->model", feature="chat", on_engage="cancel", retry=RetryParameters()
    )

    refused_soon(policy(hanging(ends)), lambda: console.engage("feature:chat"))

    counted = policy.counters.counted()
    assert (counted["failure"], counted["retry"]) == (0, 0)
    assert ends == ["cancelled"]


def test_running_asynchronous_generator_is_cancelled_within_its_step(console):
    @console.client().guard(feature="chat", on_engage="cancel")
    async def items(began):
        yield "first"
        began.set()
        await asyncio.sleep(FOREVER_SECONDS)
        yield "second"

    async def take(began):
        return [item async for item in items(began)]

    assert refused_soon(take, lambda: console.engage("feature:chat")).switch == "feature:chat"


def test_running_generator_ends_at_its_next_step(console):
    closed = []

    @console.client().guard(feature="chat", on_engage="cancel")
    def items():
        try:
            yield "first"
            yield "second"
        finally:
            closed.append(True)

    running = items()
    first = next(running)
    console.engage("feature:chat")

    with pytest.raises(SwitchEngaged):
        next(running)
    assert (first, closed) == ("first", [True])


def test_cancellation_from_elsewhere_stays_one(console):
    guard = console.client().guard(feature="chat", on_engage="cancel")

    async def main():
        began = asyncio.Event()
        task = asyncio.create_task(guard(hanging([]))(began))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_nested_guards_are_ended_by_the_one_that_is_engaged(console):
    gear = console.client()
    inner = gear.guard(feature="search", on_engage="cancel")(hanging([]))
    outer = gear.guard(feature="chat", on_engage="cancel")(inner)

    refusal = refused_soon(outer, lambda: console.engage("feature:chat"))

    assert refusal.switch == "feature:chat"


def test_nested_guards_that_are_both_engaged_leave_no_cancellation_behind(console):
    gear = console.client()
    inner = gear.guard(feature="chat", on_engage="cancel")(hanging([]))
    outer = gear.guard(feature="chat", on_engage="cancel")(inner)

    async def ask(began):
        try:
            await outer(began)
        finally:
            await asyncio.sleep(0.01)
            assert asyncio.current_task().cancelling() == 0

    assert refused_soon(ask, lambda: console.engage("feature:chat")).switch == "feature:chat"


def test_call_that_ends_as_it_is_cancelled_keeps_its_value(console):
    @console.client().guard(feature="chat", on_engage="cancel")
    async def ask():
        console.engage("feature:chat")
        return "well"

    async def main():
        value = await ask()
        await asyncio.sleep(0.01)
        return value

    assert asyncio.run(main()) == "well"


def test_fallback_does_not_answer_for_a_cancelled_call_unless_it_may(console):
    gear = console.client()
    given = {"feature": "chat", "on_engage": "cancel"}
    closed = gear.policy("core->a", **given, fallback=Fallback(default="stand-in"))
    opened = gear.policy("core->b", **given, fallback=Fallback(default="stand-in", on_switch=True))

    refused_soon(closed(hanging([])), lambda: console.engage("feature:chat"))
    console.release("feature:chat")

    async def main():
        began = asyncio.Event()
        task = asyncio.create_task(opened(hanging([]))(began))
        await began.wait()
        await asyncio.to_thread(console.engage, "feature:chat")
        return await asyncio.wait_for(task, SOON_SECONDS)

    assert asyncio.run(main()) == "stand-in"


@pytest.mark.parametrize("on_engage", ["finish", "cancel"])
def test_plain_function_can_ask_its_token(console, on_engage):
    @console.client().guard(feature="chat", on_engage=on_engage)
    def work():
        token = cancel_token()
        before = token.is_cancelled
        console.engage("feature:chat", reason="data leaks")
        token.raise_if_cancelled()
        return before

    with pytest.raises(SwitchEngaged, match="data leaks"):
        work()


def test_token_wakes_who_waits_for_it(console):
    waits = threading.Event()
    woken = []

    @console.client().guard(feature="chat")
    def work():
        token = cancel_token()
        waits.set()
        began = time.monotonic()
        woken.append((token.wait(FOREVER_SECONDS), time.monotonic() - began < SOON_SECONDS))

    thread = threading.Thread(target=work)
    thread.start()
    assert waits.wait(SOON_SECONDS)
    console.engage("feature:chat")
    thread.join(SOON_SECONDS)

    assert woken == [(True, True)]


def test_token_without_a_guard_is_never_cancelled(console):
    token = cancel_token()
    console.engage("feature:chat")

    assert not token.is_cancelled
    assert not token.wait(0.001)


@pytest.mark.parametrize("given", ["stop", None, True])
def test_what_becomes_of_running_calls_must_be_a_known_word(console, given):
    with pytest.raises(ValueError, match="on_engage"):
        console.client().guard(feature="chat", on_engage=given)
