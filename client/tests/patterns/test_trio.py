"""All patterns behave under trio as under asyncio."""

import threading
import time
from functools import partial

import anyio
import httpx
import pytest
import trio
from trio.testing import MockClock

from switchgear import (
    Breaker,
    BreakerParameters,
    Bulkhead,
    BulkheadFull,
    BulkheadParameters,
    Deadline,
    DeadlineExceeded,
    Fallback,
    Policy,
    Retry,
    RetryParameters,
    SwitchEngaged,
    Timeout,
    async_backend,
)
from switchgear.adapters.httpx import AsyncTransport
from switchgear.dlq import AsyncConsumer
from switchgear.patterns.timeout import CallTimeout
from switchgear.steps import Job, Runner, SQLiteStore, Step
from switchgear.testing import Console, FakeClock, no_wait

LONG = 30.0


def run(main, *args):
    """Run `main` under trio. When all tasks wait, its clock is advanced at once."""
    return trio.run(main, *args, clock=MockClock(autojump_threshold=0.001))


def run_live(main):
    """Run `main` under trio by the machine's clock, for tests with other threads."""
    return trio.run(main)


async def hang():
    await trio.sleep_forever()


class Failing:
    def __init__(self, times):
        self.times = times
        self.calls = 0

    async def __call__(self):
        self.calls += 1
        await trio.lowlevel.checkpoint()
        if self.calls <= self.times:
            raise ConnectionError(f"number {self.calls}")
        return "fine"


@pytest.mark.parametrize(("kind", "error"), [(Timeout, CallTimeout), (Deadline, DeadlineExceeded)])
def test_coroutine_that_hangs_is_cut_off(kind, error):
    async def block():
        async with kind(LONG):
            await hang()

    for cut_off in (kind(LONG)(hang), block):
        with pytest.raises(error) as caught:
            run(cut_off)
        assert caught.value.seconds == LONG


@pytest.mark.parametrize(("kind", "error"), [(Timeout, CallTimeout), (Deadline, DeadlineExceeded)])
def test_step_of_a_generator_that_hangs_is_cut_off(kind, error):
    @kind(LONG)
    async def stream():
        yield 1
        await hang()

    seen = []

    async def main():
        async for each in stream():
            seen.append(each)

    with pytest.raises(error):
        run(main)
    assert seen == [1]


def test_shorter_limit_of_two_ends_it_and_says_which_it_was():
    with pytest.raises(DeadlineExceeded):
        run(Deadline(5)(Timeout(LONG)(hang)))
    with pytest.raises(CallTimeout):
        run(Deadline(LONG)(Timeout(5)(hang)))
    with pytest.raises(DeadlineExceeded) as caught:
        run(Deadline(5)(Deadline(LONG)(Timeout(None)(hang))))
    assert caught.value.seconds == 5


def test_code_inside_a_deadline_sees_its_error_and_no_cancellation():
    errors = []

    async def watched():
        try:
            await Timeout(None)(hang)()
        except BaseException as error:
            errors.append(type(error))
            raise

    with pytest.raises(DeadlineExceeded):
        run_live(Deadline(0.05)(Deadline(LONG)(watched)))
    assert errors == [DeadlineExceeded]


def test_code_after_an_inner_deadline_is_cancelled_at_its_next_wait():
    reached = []

    @Deadline(5)
    async def stubborn():
        with pytest.raises(DeadlineExceeded):
            await Timeout(None)(hang)()
        reached.append("caught")
        await trio.sleep(1)
        reached.append("waited")

    with pytest.raises(DeadlineExceeded):
        run(stubborn)
    assert reached == ["caught"]


def test_block_in_time_is_left_and_the_task_goes_on():
    async def main():
        async with Deadline(5), Timeout(5):
            await trio.sleep(1)
        await trio.sleep(LONG)
        return "here"

    assert run(main) == "here"


def test_cancellation_from_outside_stays_one():
    seen = []

    async def watched():
        try:
            await Deadline(LONG)(Timeout(LONG)(hang))()
        except BaseException as error:
            seen.append(type(error))
            raise

    async def main():
        with trio.move_on_after(1) as scope:
            await watched()
        return scope.cancelled_caught

    assert run(main) is True
    assert seen == [trio.Cancelled]


def test_rest_of_a_group_is_raised_if_a_part_of_it_was_cut_off():
    async def main():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(hang)
            try:
                await hang()
            finally:
                raise KeyError("mine")

    with pytest.raises(BaseExceptionGroup) as caught:
        run(Timeout(5)(main))
    assert caught.group_contains(KeyError)
    assert not caught.group_contains(trio.Cancelled)


def test_coroutine_is_cut_off_when_a_fake_clock_is_advanced():
    clock = FakeClock()
    limit = Timeout(3600, clock=clock.monotonic)
    deadline = Deadline(3600, clock=clock.monotonic)
    seen = []

    async def watched(cut_off):
        try:
            await cut_off()
        except BaseException as error:
            seen.append(type(error))

    async def main(cut_off):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watched, cut_off)
            await trio.testing.wait_all_tasks_blocked()
            clock.advance(3600)

    run_live(partial(main, limit(hang)))
    run_live(partial(main, deadline(partial(watched, Deadline(None)(Timeout(None)(hang))))))

    assert seen == [CallTimeout, DeadlineExceeded]


def test_retry_backs_off_and_tries_again():
    failing, states = Failing(2), []
    pause = RetryParameters(attempts=3, base_seconds=60, cap_seconds=60)

    async def main():
        began = trio.current_time()
        value = await Retry("a", pause, on_retry=states.append)(failing)()
        return value, trio.current_time() - began

    value, took = run(main)

    assert (value, failing.calls) == ("fine", 3)
    assert took == pytest.approx(sum(state.wait_seconds for state in states))


def test_back_off_inside_of_a_guard_ends_when_its_switch_is_engaged():
    console = Console()
    gear = console.client()
    failing = Failing(9)
    pause = RetryParameters(attempts=9, base_seconds=3600, cap_seconds=3600)
    ask = gear.guard(feature="chat")(Retry("a", pause)(failing))

    async def main():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
            await trio.to_thread.run_sync(console.engage, "feature:chat")

    with pytest.raises(ExceptionGroup) as caught:
        run_live(main)
    assert caught.group_contains(SwitchEngaged)
    assert failing.calls == 1


def test_skipped_and_faked_waits_let_other_tasks_run():
    clock = FakeClock()
    fake = Retry("a", RetryParameters(), clock=clock.monotonic, sleep=clock.sleep)
    ran = []

    async def other():
        ran.append("other")

    async def main(retry):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(other)
            await retry(Failing(2))()

    with no_wait():
        run_live(partial(main, Retry("b", RetryParameters(base_seconds=600, cap_seconds=600))))
    run_live(partial(main, fake))

    assert ran == ["other", "other"]
    assert clock.monotonic() > 0


def test_call_in_the_queue_of_a_bulkhead_is_admitted_by_a_task():
    bulkhead = Bulkhead("a", BulkheadParameters(limit=1, queue=5, queue_seconds=60))
    order = []

    async def call(number):
        async with bulkhead:
            order.append(number)
            await trio.sleep(1)

    async def main():
        async with trio.open_nursery() as nursery:
            for number in range(4):
                nursery.start_soon(call, number)

    run(main)

    assert sorted(order) == [0, 1, 2, 3]
    assert bulkhead.look().in_flight == bulkhead.look().queued == 0


def test_call_in_the_queue_of_a_bulkhead_is_admitted_by_a_thread():
    bulkhead = Bulkhead("a", BulkheadParameters(limit=1, queue=5, queue_seconds=60))
    permit = bulkhead.acquire()

    async def main():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bulkhead.acquire_async)
            while not bulkhead.look().queued:
                await trio.sleep(0)
            await trio.to_thread.run_sync(permit.release)
        return bulkhead.look()

    found = run_live(main)

    assert (found.in_flight, found.queued) == (1, 0)


def test_call_in_a_queue_is_refused_when_its_time_is_over():
    bulkhead = Bulkhead("a", BulkheadParameters(limit=1, queue=5, queue_seconds=0.1))

    async def main():
        async with bulkhead:
            with pytest.raises(BulkheadFull, match=r"within 0\.1 s"):
                await bulkhead.acquire_async()

    run_live(main)

    assert bulkhead.look().in_flight == bulkhead.look().queued == 0


def test_call_that_is_cancelled_in_a_queue_leaves_it():
    bulkhead = Bulkhead("a", BulkheadParameters(limit=1, queue=5, queue_seconds=60))

    async def main():
        async with bulkhead:
            with trio.move_on_after(1):
                await bulkhead.acquire_async()
            return bulkhead.look().queued

    assert run(main) == 0
    assert bulkhead.look().in_flight == 0


def test_plain_function_does_not_wait_in_a_queue_in_the_event_loop():
    bulkhead = Bulkhead("a", BulkheadParameters(limit=1, queue=5, queue_seconds=LONG))

    async def main():
        began = time.monotonic()
        with bulkhead, pytest.raises(BulkheadFull):
            bulkhead.acquire()
        return time.monotonic() - began

    assert run_live(main) < LONG / 3


class Guarded:
    """Ways to guard a call that hangs, with `on_engage="cancel"`."""

    @staticmethod
    def coroutine(guard):
        return guard(hang)

    @staticmethod
    def block(guard):
        async def call():
            async with guard:
                await hang()

        return call

    @staticmethod
    def generator(guard):
        @guard
        async def stream():
            await hang()
            yield

        async def call():
            async for _ in stream():
                pass

        return call


@pytest.mark.parametrize("way", ["coroutine", "block", "generator"])
def test_call_in_flight_is_cancelled_when_its_switch_is_engaged(way):
    console = Console()
    gear = console.client()
    call = getattr(Guarded, way)(gear.guard(feature="chat", on_engage="cancel"))

    async def main():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await trio.testing.wait_all_tasks_blocked()
            threading.Thread(target=console.engage, args=["feature:chat"]).start()

    with pytest.raises(ExceptionGroup) as caught:
        run_live(main)
    assert caught.group_contains(SwitchEngaged)


def test_call_that_a_guard_could_cancel_ends_by_itself():
    gear = Console().client()

    @gear.guard(feature="chat", on_engage="cancel")
    async def ask():
        await trio.sleep(1)
        return "fine"

    async def main():
        with trio.move_on_after(5):
            return await ask(), await ask()

    assert run(main) == ("fine", "fine")


def test_breaker_counts_a_timeout_and_no_cancellation():
    breaker = Breaker("a", BreakerParameters(failure_count=1, minimum_calls=1))

    async def main():
        with trio.move_on_after(1):
            await breaker(hang)()
        assert breaker.state == "closed"
        with pytest.raises(CallTimeout):
            await breaker(Timeout(5)(hang))()
        return breaker.state

    assert run(main) == "open"


def test_cancellation_is_neither_tried_again_nor_answered_by_a_fallback():
    calls = []

    @Fallback("a", default="stands in")
    @Retry("a", RetryParameters(attempts=3))
    async def ask():
        calls.append("made")
        await hang()

    async def main():
        with trio.move_on_after(1) as scope:
            await ask()
        return scope.cancelled_caught

    assert run(main) is True
    assert calls == ["made"]


def test_fallback_asks_its_hops_and_answers():
    async def other():
        await trio.lowlevel.checkpoint()
        return "another"

    assert run(Fallback("a", other)(Failing(1))) == "another"


def test_whole_policy_of_a_call_that_hangs():
    gear = Console().client(service="core")
    policy = gear.policy(
        "core->oracle",
        feature="ask",
        deadline_seconds=8,
        timeout_seconds=3,
        retry=RetryParameters(attempts=2, base_seconds=0.001),
        bulkhead=BulkheadParameters(limit=1, queue=2, queue_seconds=5),
        fallback=Fallback(default="stands in"),
    )

    async def blocked():
        async with policy:
            await hang()

    async def in_a_loop():
        async for attempt in policy:
            async with attempt:
                await hang()

    assert run(policy(hang)) == "stands in"
    for call in (blocked, in_a_loop):
        with pytest.raises(CallTimeout):
            run(call)
    counted = policy.counters.counted()
    assert (counted["timeout"], counted["retry"], counted["fallback"]) == (5, 2, 1)
    assert policy.bulkhead.look().in_flight == 0


def test_deadline_alone_of_a_policy_counts_a_call_that_hangs():
    policy = Policy("a", deadline_seconds=8)

    with pytest.raises(DeadlineExceeded):
        run(policy(hang))

    assert policy.counters.counted()["timeout"] == 1


def test_httpx_transport_tries_again_and_cuts_off():
    answers = [httpx.Response(503), httpx.Response(200)]

    async def answer(request):
        if request.url.path == "/hangs":
            await hang()
        return answers.pop(0)

    policy = Policy("a", retry=RetryParameters(attempts=2), timeout_seconds=3)
    transport = AsyncTransport(policy, httpx.MockTransport(answer))

    async def main():
        async with httpx.AsyncClient(transport=transport) as client:
            with pytest.raises(httpx.ReadTimeout):
                await client.post("http://oracle.test/hangs")
            return await client.get("http://oracle.test/")

    assert run(main).status_code == 200


def test_client_is_waited_for_and_closed():
    async def main():
        async with Console().client() as gear:
            return await gear.ready(0)

    assert run_live(main) is True


def test_patterns_that_need_asyncio_raise_under_trio(tmp_path):
    step = Step(name="one", run=lambda context: None)
    runner = Runner(SQLiteStore(tmp_path / "jobs"), [Job("a", (step,))])
    consumer = AsyncConsumer(redis=None, handler=hang, stream="axiom:events", group="synapse")

    async def callback(change): ...

    gear = Console().client()
    for needs in (partial(runner.arun, runner.add("a")), consumer.step, consumer.run):
        with pytest.raises(RuntimeError, match="does not work with trio"):
            run_live(needs)

    async def main():
        gear.on_change(callback)

    with pytest.raises(RuntimeError, match="asyncio event loop"):
        run_live(main)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_program_of_anyio_works_under_either_backend(backend):
    bulkhead = Bulkhead("a", BulkheadParameters(limit=1, queue=5, queue_seconds=LONG))
    calls = []

    @Retry("a", RetryParameters(attempts=2, base_seconds=0.001))
    @bulkhead
    @Timeout(0.02)
    async def ask():
        calls.append("made")
        await anyio.sleep_forever()

    async def main():
        async with anyio.create_task_group() as group:
            for _ in range(2):
                group.start_soon(_raises, CallTimeout, ask)

    anyio.run(main, backend=backend)

    assert len(calls) == 4
    assert bulkhead.look().in_flight == 0


async def _raises(error, call):
    with pytest.raises(error):
        await call()


def test_imported_but_idle_trio_is_ignored():
    assert async_backend.trio_here() is None
    assert not async_backend.is_running()


def test_asyncio_within_a_task_of_trio_goes_first():
    import asyncio

    @Retry("a", RetryParameters(attempts=2, base_seconds=0.001))
    @Timeout(0.02)
    async def ask():
        await asyncio.Event().wait()

    async def main():
        return asyncio.run(ask())

    with pytest.raises(CallTimeout):
        run_live(main)


def test_asyncio_that_hosts_trio_has_tasks_of_both():
    import asyncio

    seen = []

    async def of_trio():
        seen.append(async_backend.trio_here() is trio)
        with pytest.raises(CallTimeout):
            await Timeout(0.02)(hang)()
        await Retry("a", RetryParameters(base_seconds=0.01))(Failing(1))()

    async def of_asyncio():
        done = asyncio.Event()
        loop = asyncio.get_running_loop()
        trio.lowlevel.start_guest_run(
            of_trio,
            run_sync_soon_threadsafe=loop.call_soon_threadsafe,
            done_callback=lambda outcome: (outcome.unwrap(), done.set()),
            host_uses_signal_set_wakeup_fd=True,
        )
        while not done.is_set():
            seen.append(async_backend.trio_here() is trio)
            with pytest.raises(CallTimeout):
                await Timeout(0.005)(asyncio.Event().wait)()

    asyncio.run(of_asyncio())

    assert seen[0] is False
    assert seen.count(True) == 1
