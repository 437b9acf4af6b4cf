"""The bounds of a guard: what it holds for, and when it no longer does."""

import asyncio
import contextvars
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from switchgear import RetryParameters, SwitchEngaged, cancel_token
from switchgear.adapters.httpx import AsyncTransport, Transport
from switchgear.cancellation import async_sleep, sleep
from switchgear.testing import Console

FOREVER_SECONDS = 60.0
SOON_SECONDS = 5.0


@pytest.fixture
def console() -> Console:
    return Console()


class Interrupted(BaseException):
    """Stands for what the handler of a signal raises."""


def is_bound():
    return cancel_token().is_cancelled


def test_task_that_outlives_a_plain_function_with_found_keys_is_not_bound(console):
    @console.client().guard(feature=lambda name: name)
    def start(name):
        return contextvars.copy_context()

    context = start("chat")
    console.engage("feature:chat")

    assert not context.run(is_bound)


def test_policy_block_left_in_another_thread_binds_neither(console):
    policy = console.client().policy("core->model", feature="chat")

    def block():
        with policy:
            yield

    steps = block()
    with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:
        first.submit(next, steps).result()
        second.submit(next, steps, None).result()
        console.engage("feature:chat")

        assert not first.submit(is_bound).result()
        assert not second.submit(is_bound).result()


def test_cancelling_block_outside_of_a_task_leaves_nothing_behind(console):
    guard = console.client().guard(feature="chat", on_engage="cancel")

    async def ask():
        async with guard:
            pass

    with pytest.raises(RuntimeError, match="task"):
        ask().send(None)
    console.engage("feature:chat")

    assert not is_bound()


def interrupted_after_each_builtin(call):
    """Call repeatedly, interrupted after one more builtin call in the guards each time.

    Python checks for signals there. Yield after each call.
    """
    last = 0
    while True:
        last += 1
        seen = 0

        def interrupt(frame, event, argument, last=last):
            nonlocal seen
            code = frame.f_code
            if event == "c_return" and code.co_filename.endswith("guards.py"):
                seen += code.co_name.startswith("call")
                if seen == last:
                    sys.setprofile(None)
                    raise Interrupted

        sys.setprofile(interrupt)
        try:
            call()
        except Interrupted:
            yield
        else:
            return
        finally:
            sys.setprofile(None)


@pytest.mark.parametrize("keys", [{"feature": "chat"}, {"feature": lambda: "chat"}])
def test_signal_that_interrupts_a_guarded_function_leaves_nothing_behind(console, keys):
    guarded = console.client().guard(**keys)(lambda: None)
    interrupted = 0

    for _ in interrupted_after_each_builtin(guarded):
        interrupted += 1
        console.engage("feature:chat")
        assert not is_bound()
        console.release("feature:chat")

    assert interrupted >= 3


def test_switch_engaged_and_released_at_once_shortens_no_back_off(console):
    async def main():
        async with console.client().guard(feature="chat"):
            asyncio.get_running_loop().call_later(0.01, flip)
            began = asyncio.get_running_loop().time()
            await async_sleep(0.2)
            return asyncio.get_running_loop().time() - began

    def flip():
        console.engage("feature:chat")
        console.release("feature:chat")

    assert asyncio.run(main()) >= 0.19


def test_blocked_thread_sleeps_on_when_a_switch_was_engaged_and_released_at_once():
    class Flipping:
        """A source that refuses exactly while it tells of a change."""

        is_engaged = False

        def refusal(self):
            return SwitchEngaged("feature:chat") if self.is_engaged else None

        def subscribe(self, callback):
            self.is_engaged = True
            callback()
            self.is_engaged = False
            return lambda: None

    began = time.monotonic()

    sleep(0.1, [Flipping()])

    assert time.monotonic() - began >= 0.1


def test_running_attempt_of_an_asynchronous_loop_is_cancelled_on_request(console):
    policy = console.client().policy(
        "core->model", feature="chat", on_engage="cancel", retry=RetryParameters()
    )
    tried = []

    async def ask(began):
        async for attempt in policy:
            async with attempt:
                tried.append(attempt.number)
                began.set()
                await asyncio.sleep(FOREVER_SECONDS)

    async def main():
        began = asyncio.Event()
        task = asyncio.create_task(ask(began))
        await asyncio.wait_for(began.wait(), SOON_SECONDS)
        console.engage("feature:chat")
        with pytest.raises(SwitchEngaged):
            await asyncio.wait_for(task, SOON_SECONDS)
        return task.cancelling()

    assert asyncio.run(main()) == 0
    assert tried == [1]
    assert policy.counters.counted()["failure"] == 0


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "coroutine"])
def test_request_refused_while_it_backs_off_names_the_last_failure(console, is_async):
    def fail(request):
        console.engage("feature:chat")
        raise httpx.ConnectError("away")

    policy = console.client().policy(
        "core->model", feature="chat", retry=RetryParameters(base_seconds=SOON_SECONDS)
    )
    inner = httpx.MockTransport(fail)

    async def aask():
        async with httpx.AsyncClient(transport=AsyncTransport(policy, inner)) as client:
            await client.get("http://model/")

    def ask():
        with httpx.Client(transport=Transport(policy, inner)) as client:
            client.get("http://model/")

    with pytest.raises(SwitchEngaged) as refused:
        asyncio.run(aask()) if is_async else ask()

    assert isinstance(refused.value.__cause__, httpx.ConnectError)
