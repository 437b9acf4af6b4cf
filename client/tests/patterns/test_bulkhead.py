"""The bulkhead's limit, its queue and their order, and its rejections."""

import asyncio
import gc
import inspect
import os
import signal
import threading
import time

import pytest

from switchgear.journal import add_hook
from switchgear.patterns.bulkhead import Bulkhead
from switchgear.patterns.deadline import Deadline
from switchgear.patterns.parameters import BulkheadParameters
from switchgear.refusals import BulkheadFull
from tests.patterns.threads import PATIENCE, join_threads, start_threads


def parameters(limit, queue=0, seconds=0.0, per_key=None):
    return BulkheadParameters(
        limit=limit, queue=queue, queue_seconds=seconds, per_key_limit=per_key
    )


def wait_until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it never came so far"
        time.sleep(0.002)


def queued(bulkhead, how_many):
    wait_until(lambda: bulkhead.look().queued == how_many)


class Most:
    """A counter of the most calls that ran at once."""

    def __init__(self):
        self.lock = threading.Lock()
        self.now = self.most = self.calls = 0

    def __enter__(self):
        with self.lock:
            self.now += 1
            self.calls += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *about):
        with self.lock:
            self.now -= 1


def test_permit_is_held_during_the_call_and_released_for_any_outcome():
    bulkhead = Bulkhead("llm", parameters(2))

    @bulkhead
    def ask(question, *, loud=False):
        """Asks."""
        assert bulkhead.look().in_flight == 1
        if question is None:
            raise ValueError("nothing asked")
        return question.upper() if loud else question

    assert ask("why", loud=True) == "WHY"
    with pytest.raises(ValueError, match="nothing asked"):
        ask(None)
    assert bulkhead.look().in_flight == 0
    assert ask.__doc__ == "Asks."
    assert str(inspect.signature(ask)) == "(question, *, loud=False)"


def test_one_too_many_is_refused_at_once_and_counted():
    bulkhead = Bulkhead("llm", parameters(1))
    entries = []
    end = add_hook(entries.append)
    try:
        with bulkhead, pytest.raises(BulkheadFull) as refused, bulkhead:
            raise AssertionError("there was no place")
    finally:
        end()

    assert (refused.value.name, refused.value.why) == ("llm", "limit of 1")
    assert bulkhead.look().rejected == 1
    assert [(entry.name, entry.about) for entry in entries] == [("bulkhead_full", "llm")]
    with bulkhead:
        assert bulkhead.look().in_flight == 1


def test_without_parameters_all_pass():
    bulkhead = Bulkhead("llm")
    for _ in range(100):
        bulkhead.acquire()

    look = bulkhead.look()
    assert (look.in_flight, look.limit, look.queue_limit) == (100, None, None)


def test_tiers_are_those_of_the_table():
    look = Bulkhead("llm", "critical").look()
    assert (look.limit, look.queue_limit) == (5, 10)
    with pytest.raises(ValueError, match="critical, standard, optional"):
        Bulkhead("llm", "vip")


def test_many_threads_and_tasks_never_run_more_than_the_limit_and_none_is_lost():
    bulkhead = Bulkhead("llm", parameters(3, queue=1000, seconds=PATIENCE))
    most = Most()

    @bulkhead
    def call():
        with most:
            time.sleep(0.0002)

    @bulkhead
    async def acall():
        with most:
            await asyncio.sleep(0.0002)

    async def tasks():
        await asyncio.gather(*(acall() for _ in range(200)))

    threads = start_threads(
        *[lambda: [call() for _ in range(10)]] * 20, *[lambda: asyncio.run(tasks())] * 2
    )
    join_threads(threads)

    look = bulkhead.look()
    assert most.most == 3
    assert most.calls == 600
    assert (look.in_flight, look.queued, look.rejected) == (0, 0, 0)


def test_full_queue_and_long_waits_are_rejected():
    bulkhead = Bulkhead("llm", parameters(1, queue=1, seconds=0.3))
    bulkhead.acquire()
    waited = []

    def wait():
        began = time.monotonic()
        with pytest.raises(BulkheadFull, match=r"no permit within 0\.3 s"):
            bulkhead.acquire()
        waited.append(time.monotonic() - began)

    threads = start_threads(wait)
    queued(bulkhead, 1)
    with pytest.raises(BulkheadFull, match="queue is full"):
        bulkhead.acquire()
    join_threads(threads)

    assert waited[0] >= 0.29
    assert bulkhead.look().queued == 0
    assert bulkhead.look().rejected == 2


def test_wait_ends_with_the_deadline():
    bulkhead = Bulkhead("llm", parameters(1, queue=1, seconds=PATIENCE))
    bulkhead.acquire()
    began = time.monotonic()

    with pytest.raises(BulkheadFull, match="before the deadline"), Deadline(0.1):
        bulkhead.acquire()

    assert time.monotonic() - began < PATIENCE / 2


def lined_up(bulkhead, waiting):
    """Return the order in which waiting calls got the permit.

    `waiting` are (name, priority, key) in their order of arrival, every second one as a task of an
    event loop of its own.
    """
    served = []

    def thread(name, priority, key):
        try:
            with bulkhead.of(key, priority):
                served.append(name)
        except BulkheadFull as full:
            served.append(f"{name} {full.why}")

    async def task(name, priority, key):
        try:
            async with bulkhead.of(key, priority):
                served.append(name)
        except BulkheadFull as full:
            served.append(f"{name} {full.why}")

    threads = []
    for at, who in enumerate(waiting):
        before = bulkhead.look()
        run = (
            (lambda who=who: asyncio.run(task(*who))) if at % 2 else (lambda who=who: thread(*who))
        )
        threads += start_threads(run)
        wait_until(
            lambda before=before: (
                bulkhead.look().queued > before.queued
                or len(served) > 0
                or bulkhead.look().rejected > before.rejected
            )
        )
    return served, threads


def test_queue_is_ordered_by_priority_then_arrival():
    bulkhead = Bulkhead("llm", parameters(1, queue=10, seconds=PATIENCE))
    permits = bulkhead.acquire()

    served, threads = lined_up(
        bulkhead,
        [("a", 0, None), ("b", 0, None), ("vip", 10, None), ("c", 0, None), ("vip2", 10, None)],
    )
    permits.release()
    join_threads(threads)

    assert served == ["vip", "vip2", "a", "b", "c"]


def test_full_queue_lets_a_higher_one_in_for_the_newest_of_the_lowest():
    bulkhead = Bulkhead("llm", parameters(1, queue=2, seconds=PATIENCE))
    permits = bulkhead.acquire()
    served, threads = lined_up(bulkhead, [("a", 0, None), ("b", 0, None)])

    with pytest.raises(BulkheadFull, match="queue is full"):
        bulkhead.acquire(priority=0)
    more = start_threads(lambda: (bulkhead.acquire(priority=5).release(), served.append("vip")))
    wait_until(lambda: served == ["b displaced"])
    permits.release()
    join_threads(threads + more)

    assert sorted(served) == ["a", "b displaced", "vip"]
    assert bulkhead.look().in_flight == 0


def test_key_at_its_limit_does_not_block_the_queue():
    bulkhead = Bulkhead("llm", parameters(3, queue=10, seconds=PATIENCE, per_key=1))
    mine = bulkhead.acquire("u1")
    served, threads = lined_up(bulkhead, [("mine again", 0, "u1")])

    bulkhead.acquire("u2").release("u2")
    assert served == []
    mine.release("u1")
    join_threads(threads)

    assert served == ["mine again"]
    assert bulkhead.look().in_flight == 0


def test_key_and_priority_are_found_in_the_arguments():
    bulkhead = Bulkhead(
        "llm",
        parameters(5, per_key=1),
        key=lambda user: user,
        priority=lambda is_vip: 10 if is_vip else 0,
    )

    @bulkhead
    def ask(for_whom, user, is_vip=False):
        return ask(None, for_whom) if for_whom else "asked"

    assert ask("u2", "u1") == "asked"
    with pytest.raises(BulkheadFull, match="limit of key"):
        ask("u1", user="u1")
    assert bulkhead.look().in_flight == 0


def test_priority_function_orders_the_queue():
    bulkhead = Bulkhead(
        "llm",
        parameters(1, queue=5, seconds=PATIENCE),
        priority=lambda is_vip: 10 if is_vip else 0,
    )
    served = []

    @bulkhead
    async def ask(who, is_vip=False):
        served.append(who)

    async def scene():
        permits = await bulkhead.acquire_async()
        tasks = [asyncio.ensure_future(ask("a")), asyncio.ensure_future(ask("vip", is_vip=True))]
        await asyncio.sleep(0)
        permits.release()
        await asyncio.gather(*tasks)

    asyncio.run(scene())
    assert served == ["vip", "a"]


def test_no_key_is_written_to_the_journal_or_into_the_error():
    bulkhead = Bulkhead("llm", parameters(5, per_key=1))
    bulkhead.acquire("sk-secret")
    entries = []
    end = add_hook(entries.append)
    try:
        with pytest.raises(BulkheadFull, match="limit of key") as raised:
            bulkhead.acquire("sk-secret")
    finally:
        end()

    assert [entry.fields["why"] for entry in entries] == ["limit of key"]
    assert "sk-secret" not in repr(entries) + str(raised.value) + repr(raised.value)


def test_cancelled_waiter_leaves_the_queue_and_a_place_given_to_it_goes_on():
    async def scene():
        bulkhead = Bulkhead("llm", parameters(1, queue=5, seconds=PATIENCE))
        permits = bulkhead.acquire()
        first, second = (asyncio.ensure_future(bulkhead.acquire_async()) for _ in range(2))
        await asyncio.sleep(0)
        assert bulkhead.look().queued == 2

        first.cancel()
        await asyncio.sleep(0)
        assert bulkhead.look().queued == 1
        third = asyncio.ensure_future(bulkhead.acquire_async())
        await asyncio.sleep(0)
        permits.release()  # It is the second one's, which is cancelled before it could run.
        second.cancel()
        (await third).release()

        assert first.cancelled()
        assert second.cancelled()
        assert bulkhead.look().in_flight == 0

    asyncio.run(scene())


def test_many_cancelled_at_any_moment_leave_no_place_taken():
    async def scene():
        bulkhead = Bulkhead("llm", parameters(2, queue=1000, seconds=PATIENCE))

        @bulkhead
        async def call(seconds):
            await asyncio.sleep(seconds)

        tasks = [asyncio.ensure_future(call(0.001 * (n % 3))) for n in range(300)]
        for at, task in enumerate(tasks):
            if at % 3:
                await asyncio.sleep(0)
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

        look = bulkhead.look()
        assert (look.in_flight, look.queued) == (0, 0)

    asyncio.run(scene())


def test_waiter_interrupted_by_a_signal_leaves_the_queue():
    bulkhead = Bulkhead("llm", parameters(1, queue=1, seconds=PATIENCE))
    permits = bulkhead.acquire()

    def interrupt(*about):
        raise KeyboardInterrupt

    def signal_once_it_waits():
        queued(bulkhead, 1)
        os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        threads = start_threads(signal_once_it_waits)
        with pytest.raises(KeyboardInterrupt):
            bulkhead.acquire()
    finally:
        signal.signal(signal.SIGUSR1, before)
    join_threads(threads)

    assert bulkhead.look().queued == 0
    permits.release()
    bulkhead.acquire().release()


def test_waiter_of_a_closed_event_loop_is_passed_by():
    bulkhead = Bulkhead("llm", parameters(1, queue=5, seconds=PATIENCE))
    permits = bulkhead.acquire()
    loop = asyncio.new_event_loop()
    forsaken = loop.create_task(bulkhead.acquire_async())
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert bulkhead.look().queued == 1

    permits.release()

    assert bulkhead.look().in_flight == 0
    assert bulkhead.look().queued == 0
    forsaken._log_destroy_pending = False
    del forsaken, loop
    gc.collect()  # Its coroutine is closed now, and gives nothing back that it never had.
    bulkhead.acquire()
    bulkhead.configure(parameters(1))
    with pytest.raises(BulkheadFull):
        bulkhead.acquire()


def test_higher_limit_admits_waiters_and_lower_limit_applies_as_calls_end():
    bulkhead = Bulkhead("llm", parameters(1, queue=5, seconds=PATIENCE))
    first = bulkhead.acquire()
    got = []
    threads = start_threads(*[lambda: got.append(bulkhead.acquire())] * 2)
    queued(bulkhead, 2)

    bulkhead.configure(parameters(3))
    join_threads(threads)
    bulkhead.configure(parameters(1))
    assert bulkhead.look().in_flight == 3
    first.release()
    got[0].release()
    with pytest.raises(BulkheadFull):
        bulkhead.acquire()
    got[1].release()
    bulkhead.acquire().release()

    assert bulkhead.look().limit == 1
    assert bulkhead.look().in_flight == 0


def test_no_limit_any_more_lets_all_in_and_a_new_one_counts_those_inside():
    bulkhead = Bulkhead("llm", parameters(1, queue=5, seconds=PATIENCE))
    permits = bulkhead.acquire()
    got = []
    threads = start_threads(*[lambda: got.append(bulkhead.acquire())] * 3)
    queued(bulkhead, 3)

    bulkhead.configure(None)
    join_threads(threads)
    bulkhead.configure(parameters(2))
    with pytest.raises(BulkheadFull):
        bulkhead.acquire()
    for each in (*got, permits):
        each.release()

    assert bulkhead.look().in_flight == 0
    bulkhead.acquire()
    bulkhead.acquire()
    with pytest.raises(BulkheadFull, match="limit of 2"):
        bulkhead.acquire()


def test_function_in_an_event_loop_does_not_wait_and_so_does_not_stop_it():
    bulkhead = Bulkhead("llm", parameters(1, queue=5, seconds=PATIENCE))

    async def scene():
        bulkhead.acquire()
        began = time.monotonic()
        with pytest.raises(BulkheadFull):
            bulkhead.acquire()
        assert time.monotonic() - began < PATIENCE / 2

    asyncio.run(scene())


def test_generators_have_their_place_from_the_first_step_to_the_end():
    bulkhead = Bulkhead("llm", parameters(1, queue=1, seconds=PATIENCE))

    @bulkhead
    def words():
        yield "a"
        yield "b"

    @bulkhead
    async def awords():
        for word in words_of_nobody:
            yield word

    words_of_nobody = ("c", "d")
    assert inspect.isgeneratorfunction(words)
    assert inspect.isasyncgenfunction(awords)

    going = words()
    assert bulkhead.look().in_flight == 0
    assert next(going) == "a"
    assert bulkhead.look().in_flight == 1
    going.close()
    assert bulkhead.look().in_flight == 0

    async def scene():
        permits = bulkhead.acquire()
        asyncio.get_running_loop().call_later(0.05, permits.release)
        return [word async for word in awords()]

    assert asyncio.run(scene()) == ["c", "d"]
    assert bulkhead.look().in_flight == 0


@pytest.mark.services
def test_child_of_a_fork_begins_with_all_places_and_the_parents_go_nowhere():
    bulkhead = Bulkhead("llm", parameters(2, queue=1, seconds=0.05))
    elsewhere = bulkhead.acquire()
    held = threading.Event()
    holder = start_threads(lambda: (bulkhead._permits._lock.acquire(), held.set(), time.sleep(0.5)))
    held.wait(PATIENCE)

    with bulkhead:
        child = os.fork()
        if child == 0:
            look = bulkhead.look()
            ok = (look.in_flight, look.limit) == (0, 2)
            bulkhead.__exit__(None, None, None)
            ok = ok and bulkhead.look().in_flight == 0
            bulkhead.acquire()
            bulkhead.acquire()
            try:
                bulkhead.acquire()
            except BulkheadFull:
                os._exit(0 if ok else 1)
            os._exit(2)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    join_threads(holder)
    elsewhere.release()
