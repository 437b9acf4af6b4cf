"""A retry that waits is woken and refused by the switch around it; no further attempt is made."""

import asyncio
import threading
import time

import httpx
import pytest

from switchgear import CircuitOpen, Retry, RetryParameters, SwitchEngaged
from switchgear.adapters.httpx import AsyncTransport, Patterns, Transport
from switchgear.testing import Console
from tests.wire.http_server import Said, serving

SLOW = RetryParameters(attempts=3, base_seconds=60, cap_seconds=60)
SOON_SECONDS = 5.0
"""Far less than the back-off, and enough for a busy machine."""


@pytest.fixture
def console() -> Console:
    return Console()


class Failing:
    """A callee that fails each time, and tells when it was called."""

    def __init__(self):
        self.calls = 0
        self.called = threading.Event()

    def __call__(self):
        self.calls += 1
        self.called.set()
        raise ConnectionError("away")

    async def later(self):
        self()


def slow_retry(**more):
    return Retry("callee", SLOW, rng=lambda: 1.0, **more)


def engage_after(called, console, switch="feature:chat"):
    """Engage from another thread, once the first attempt was made."""

    def engage():
        assert called.wait(SOON_SECONDS)
        console.engage(switch, reason="data leaks")

    thread = threading.Thread(target=engage)
    thread.start()
    return thread


def refused_by(run):
    """The refusal that ends `run`, soon."""
    began = time.monotonic()
    with pytest.raises(SwitchEngaged) as refused:
        run()
    assert time.monotonic() - began < SOON_SECONDS
    return refused.value


def test_engaged_while_a_back_off_waits_refuses_at_once(console):
    callee = Failing()
    guarded = console.client().guard(feature="chat")(slow_retry()(callee))
    thread = engage_after(callee.called, console)

    refusal = refused_by(guarded)

    thread.join()
    assert refusal.switch == "feature:chat"
    assert isinstance(refusal.__cause__, ConnectionError)
    assert callee.calls == 1


def test_engaged_while_a_coroutine_backs_off_refuses_at_once(console):
    callee = Failing()
    guarded = console.client().guard(feature="chat")(slow_retry()(callee.later))
    thread = engage_after(callee.called, console)

    refusal = refused_by(lambda: asyncio.run(guarded()))

    thread.join()
    assert isinstance(refusal.__cause__, ConnectionError)
    assert callee.calls == 1


def test_engaged_before_the_back_off_begins_refuses_without_waiting(console):
    calls = []

    def failing():
        calls.append(1)
        console.engage("feature:chat")
        raise ConnectionError

    refused_by(console.client().guard(feature="chat")(slow_retry()(failing)))

    assert len(calls) == 1


def test_policy_refuses_the_attempts_that_are_left(console):
    callee = Failing()
    policy = console.client().policy("core->model", feature="chat", retry=SLOW)
    guarded = policy(callee)
    policy.retry.rng = lambda: 1.0
    thread = engage_after(callee.called, console)

    refused_by(guarded)

    thread.join()
    assert callee.calls == 1


def test_attempts_by_hand_are_refused_too(console):
    callee = Failing()
    gear = console.client()
    thread = engage_after(callee.called, console)

    def run():
        with gear.guard(feature="chat"):
            for attempt in slow_retry():
                with attempt:
                    callee()

    refused_by(run)

    thread.join()
    assert callee.calls == 1


def test_attempts_of_a_policy_by_hand_are_refused_too(console):
    callee = Failing()
    policy = console.client().policy("core->model", feature="chat", retry=SLOW)
    policy.retry.rng = lambda: 1.0
    thread = engage_after(callee.called, console)

    async def run():
        async for attempt in policy:
            async with attempt:
                callee()

    refused_by(lambda: asyncio.run(run()))

    thread.join()
    assert callee.calls == 1


def test_key_found_in_the_arguments_is_asked_for_again(console):
    callee = Failing()
    guard = console.client().guard(segment=lambda department: department)
    guarded = guard(slow_retry()(lambda department: callee()))
    thread = engage_after(callee.called, console, "segment:finance")

    refusal = refused_by(lambda: guarded("finance"))

    thread.join()
    assert refusal.switch == "segment:finance"


def test_another_switch_disturbs_no_back_off(console):
    quick = Retry("callee", RetryParameters(attempts=2, base_seconds=0.05), rng=lambda: 1.0)
    calls = []

    @console.client().guard(feature="chat")
    @quick
    def failing_once():
        calls.append(time.monotonic())
        if len(calls) == 1:
            console.engage("feature:search")
            raise ConnectionError
        return "well"

    assert failing_once() == "well"
    assert calls[1] - calls[0] >= 0.05


def test_ramp_that_lets_the_call_through_does_not_end_it(console):
    gear = console.client()
    console.ramp("feature:chat", 99)
    quick = Retry("callee", RetryParameters(attempts=2, base_seconds=0.01))
    calls = []

    @quick
    def failing_once():
        calls.append(1)
        if len(calls) == 1:
            console.ramp("feature:chat", 0.01)
            raise ConnectionError
        return "well"

    @gear.guard(feature="chat")
    def ask():
        return failing_once()

    while True:  # Until chance lets one in, of 99 in a hundred.
        try:
            answer = ask()
        except SwitchEngaged:
            continue
        break

    assert answer == "well"


def test_guard_around_a_nested_call_is_asked_too(console):
    callee = Failing()
    gear = console.client()
    inner = gear.policy("core->model", feature="search", retry=SLOW)
    inner.retry.rng = lambda: 1.0
    ask = inner(callee)
    thread = engage_after(callee.called, console)

    refusal = refused_by(gear.guard(feature="chat")(lambda: ask()))

    thread.join()
    assert refusal.switch == "feature:chat"
    assert callee.calls == 1


def test_task_that_outlives_the_block_is_bound_by_it_no_more(console):
    gear = console.client()
    quick = Retry("callee", RetryParameters(attempts=2, base_seconds=0.0))

    async def main():
        left = asyncio.Event()
        calls = []

        @quick
        async def failing_once():
            calls.append(1)
            if len(calls) == 1:
                await left.wait()
                raise ConnectionError
            return "well"

        async with gear.guard(feature="chat"):
            task = asyncio.create_task(failing_once())
            await asyncio.sleep(0)
        console.engage("feature:chat")
        left.set()
        return await task

    assert asyncio.run(main()) == "well"


def test_generator_that_backs_off_before_an_item_is_refused(console):
    callee = Failing()

    @console.client().guard(feature="chat")
    def items():
        yield "first"
        slow_retry()(callee)()
        yield "second"

    running = items()
    thread = engage_after(callee.called, console)

    assert next(running) == "first"
    refused_by(lambda: next(running))
    thread.join()


def test_nothing_of_a_generators_guard_is_left_between_its_steps(console):
    quick = Retry("callee", RetryParameters(attempts=2, base_seconds=0.0))
    calls = []

    @console.client().guard(feature="chat")
    def items():
        yield "first"
        yield "second"

    @quick
    def failing_once():
        calls.append(1)
        if len(calls) == 1:
            raise ConnectionError
        return "well"

    running = items()
    next(running)
    console.engage("feature:chat")

    assert failing_once() == "well"
    assert next(running) == "second"  # What runs may end.


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_retry_after_of_an_answer_is_not_waited_for(console, is_async):
    gear = console.client()
    busy = Said(503, headers={"Retry-After": "20"})
    parts = Patterns(guard=gear.guard(feature="chat"), retry=Retry("callee", SLOW))
    has_begun = threading.Event()

    def answer(request):
        has_begun.set()
        return busy

    with serving(answer) as server:
        thread = engage_after(has_begun, console)

        def ask():
            with httpx.Client(
                transport=Transport(parts, httpx.HTTPTransport(verify=False))
            ) as client:
                client.get(server.url)

        async def aask():
            transport = AsyncTransport(parts, httpx.AsyncHTTPTransport(verify=False))
            async with httpx.AsyncClient(transport=transport) as client:
                await client.get(server.url)

        refused_by((lambda: asyncio.run(aask())) if is_async else ask)
        thread.join()
        assert len(server.asked) == 1


@pytest.mark.parametrize("feature", [None, "chat"], ids=["unguarded", "guarded"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_breaker_forced_open_ends_a_back_off(console, is_async, feature):
    callee = Failing()
    policy = console.client().policy("core->model", feature=feature, retry=SLOW)
    policy.retry.rng = lambda: 1.0
    ask = policy(callee.later if is_async else callee)

    def force():
        assert callee.called.wait(SOON_SECONDS)
        console.force("core->model", "forced_open")

    thread = threading.Thread(target=force)
    thread.start()
    began = time.monotonic()
    with pytest.raises(CircuitOpen) as refused:
        asyncio.run(ask()) if is_async else ask()

    thread.join()
    assert time.monotonic() - began < SOON_SECONDS
    assert isinstance(refused.value.__cause__, ConnectionError)
    assert callee.calls == 1


def test_running_policy_is_cancelled_when_its_breaker_is_forced_open(console):
    policy = console.client().policy("core->model", feature="chat", on_engage="cancel")

    @policy
    async def ask():
        console.force("core->model", "forced_open")
        await asyncio.sleep(60)

    with pytest.raises(CircuitOpen):
        asyncio.run(asyncio.wait_for(ask(), SOON_SECONDS))
