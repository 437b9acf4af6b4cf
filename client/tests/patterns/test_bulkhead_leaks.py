"""No permit is lost to a failing key, callable, cancellation or signal.

A failure of one call affects no other.
"""

import asyncio
import contextvars
import enum
import random
import signal
import sys
import threading
import uuid
from contextlib import suppress

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgear.adapters.http_requests import Patterns
from switchgear.adapters.httpx import AsyncTransport, Transport
from switchgear.patterns.bulkhead import Bulkhead
from switchgear.patterns.parameters import BulkheadParameters
from switchgear.patterns.permits import PermitPool, Waiter
from switchgear.refusals import BulkheadFull
from tests.hypothesis_examples import examples

PATIENCE = 20.0


class Tenant(enum.Enum):
    ACME = "acme"


class Hostile(str):
    """Text that can be neither hashed nor compared."""

    def __hash__(self):
        raise RuntimeError("no hash")

    def __eq__(self, other):
        raise RuntimeError("no comparison")


class Broken(Exception):
    pass


class Unprintable(uuid.UUID):
    def __str__(self):
        raise Broken


class Urgent:
    def __index__(self):
        raise Broken


def broken_wake():
    raise Broken


def assert_all_there(bulkhead, limit, keys=()):
    """Assert that all permits can be taken, one more can't, and no key is at its limit."""
    look = bulkhead.look()
    assert (look.in_flight, look.queued) == (0, 0)
    bulkhead.configure(BulkheadParameters(limit=limit, per_key_limit=1))
    for key in keys:
        bulkhead.acquire(key).release(key)
    permits = [bulkhead.acquire() for _ in range(limit)]
    with pytest.raises(BulkheadFull):
        bulkhead.acquire()
    for permit in permits:
        permit.release()
    assert bulkhead.look().in_flight == 0


@pytest.mark.parametrize(
    "key",
    [{"id": 1}, [1], pytest.param(object(), id="object"), 1.5, b"kim", True, ("a", "b")],
)
def test_invalid_key_is_refused_before_a_permit_is_taken(key):
    bulkhead = Bulkhead("llm", BulkheadParameters(limit=2), key=lambda user: user)

    @bulkhead
    def ask(user):
        return user

    @bulkhead
    async def aask(user):
        return user

    @bulkhead
    def words(user):
        yield user

    for wrong in (
        lambda: bulkhead.of(key=key),
        lambda: bulkhead.acquire(key),
        lambda: asyncio.run(bulkhead.acquire_async(key)),
        lambda: ask(key),
        lambda: asyncio.run(aask(key)),
        lambda: next(words(key)),
    ):
        with pytest.raises(TypeError, match=r"^key must be a str, int, UUID or enum member, not "):
            wrong()
    assert_all_there(bulkhead, 2)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("kim", "kim"),
        (Hostile("kim"), "kim"),
        (7, "7"),
        (uuid.UUID(int=7), str(uuid.UUID(int=7))),
        (Tenant.ACME, "acme"),
    ],
)
def test_keys_are_compared_by_their_text(key, text):
    bulkhead = Bulkhead("llm", BulkheadParameters(limit=5, per_key_limit=1))

    with bulkhead.of(key), pytest.raises(BulkheadFull, match="limit of key"), bulkhead.of(text):
        raise AssertionError("one key, two permits")
    bulkhead.acquire(key).release(key)

    assert_all_there(bulkhead, 5, [text])


@pytest.mark.parametrize("limit", [1, 2])
def test_failing_waiter_does_not_affect_the_releasing_call(limit):
    permits = PermitPool(BulkheadParameters(limit=limit, queue=10))
    for _ in range(limit):
        assert permits.acquire()
    broken = Waiter("kim", 5, broken_wake)
    woken = []
    well = Waiter("lee", 0, lambda: woken.append("lee"))
    assert [permits.enqueue(broken), permits.enqueue(well)] == ["waiting", "waiting"]

    permits.release()

    assert (broken.state, well.state, woken) == ("gone", "admitted", ["lee"])
    permits.abandon(well)
    assert permits.occupancy().in_flight == limit - 1


def test_failing_displaced_waiter_does_not_affect_the_displacing_call():
    permits = PermitPool(BulkheadParameters(limit=1, queue=1))
    permits.acquire()
    broken, urgent = Waiter(None, 0, broken_wake), Waiter(None, 9, lambda: None)

    assert [permits.enqueue(broken), permits.enqueue(urgent)] == ["waiting", "waiting"]

    assert broken.state == "displaced"
    permits.abandon(urgent)
    permits.abandon(broken)
    permits.release()
    assert (permits.occupancy().in_flight, permits.occupancy().queued) == (0, 0)


VALUES = {
    "none": None,
    "number": 1,
    "hostile": Hostile("u1"),
    "unprintable": Unprintable(int=1),
    "mapping": {},
    "urgent": Urgent(),
}
"""By words, as Hypothesis hashes and compares what it draws."""


def key_of(word):
    if word == "raises":
        raise Broken
    return VALUES.get(word, word)


CALL = st.fixed_dictionaries(
    {
        "key": st.sampled_from(
            ["none", "u1", "u2", "number", "hostile", "unprintable", "mapping", "raises"]
        ),
        "priority": st.sampled_from([0, 3, "none", "high", "urgent", "raises"]),
        "turns": st.integers(0, 3),
        "ends": st.sampled_from(["returns", "raises", "cancels itself", "is interrupted"]),
        "cancelled_at": st.lists(st.integers(0, 8), max_size=2),
        "as_block": st.booleans(),
    }
)
STEP = st.one_of(
    CALL,
    st.sampled_from(["turn", "dead loop", "broken wake", "unlimited"]),
    st.builds(
        lambda limit, queue, per_key, mode: BulkheadParameters(
            limit=limit, queue=queue, queue_seconds=PATIENCE, per_key_limit=per_key, mode=mode
        ),
        st.integers(1, 3),
        st.integers(0, 3),
        st.one_of(st.none(), st.integers(1, 2)),
        st.sampled_from(["fixed", "adaptive"]),
    ),
)


class Interrupted(BaseException):
    pass


async def play(steps):
    """Begin the calls in order, cancel each at its turns of the loop, and change limits between.

    Return the bulkhead after the end of all calls, with the most that ran at once.
    """
    bulkhead = Bulkhead(
        "llm",
        BulkheadParameters(limit=2, queue=3, queue_seconds=PATIENCE, per_key_limit=1),
        key=lambda call: key_of(call["key"]),
        priority=lambda call: key_of(call["priority"]),
    )
    inside = 0

    async def body(call):
        nonlocal inside
        inside += 1
        look = bulkhead.look()
        assert look.in_flight >= inside
        try:
            for _ in range(call["turns"]):
                await asyncio.sleep(0)
            if call["ends"] == "raises":
                raise Broken
            if call["ends"] == "cancels itself":
                raise asyncio.CancelledError
            if call["ends"] == "is interrupted":
                raise GeneratorExit
        finally:
            inside -= 1

    decorated = bulkhead(body)

    async def block(call):
        async with bulkhead.of(key_of(call["key"]), key_of(call["priority"])):
            await body(call)

    loop = asyncio.get_running_loop()
    tasks, closed = [], []
    for step in steps:
        if isinstance(step, dict):
            task = loop.create_task((block if step["as_block"] else decorated)(step))
            tasks.append((task, list(step["cancelled_at"]), [0]))
        elif step == "dead loop":
            closed.append(forsaken(bulkhead))
        elif step == "broken wake":
            waiter = Waiter("u1", 0, broken_wake)
            if bulkhead._permits.enqueue(waiter) == "admitted":
                bulkhead._permits.abandon(waiter)
        elif step == "unlimited":
            bulkhead.configure(None)
        elif step != "turn":
            bulkhead.configure(step)
        await turn(tasks)
    while not all(task.done() for task, _, _ in tasks):
        bulkhead.configure(BulkheadParameters(limit=2, queue=3, queue_seconds=PATIENCE))
        await turn(tasks)
    await asyncio.gather(*(task for task, _, _ in tasks), return_exceptions=True)
    closed.clear()  # The coroutines of closed loops are collected, and closed by that.
    return bulkhead


async def turn(tasks):
    for task, cancelled_at, turns in tasks:
        if turns[0] in cancelled_at:
            task.cancel()
        turns[0] += 1
    await asyncio.sleep(0)


def forsaken(bulkhead):
    """Return a call that waits, or has a permit, in an event loop that is closed."""
    task = []

    def run():
        loop = asyncio.new_event_loop()
        task.append(loop.create_task(bulkhead.acquire_async()))
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(PATIENCE)
    if task[0].done():
        if task[0].exception() is None:
            task[0].result().release()
    else:
        task[0]._log_destroy_pending = False
    return task[0]


@examples(150)
@given(st.lists(STEP, max_size=25))
def test_no_schedule_of_tasks_loses_a_permit(steps):
    bulkhead = asyncio.run(play(steps))

    bulkhead.configure(BulkheadParameters(limit=2, queue=3, per_key_limit=1))
    purge(bulkhead)
    assert_all_there(bulkhead, 2, ["u1", "u2", "1"])


def purge(bulkhead):
    """Let waiters that can't be woken leave the queue."""
    bulkhead.configure(None)
    bulkhead.configure(BulkheadParameters(limit=2, queue=3, per_key_limit=1))


@examples(30)
@given(
    st.lists(st.lists(CALL, min_size=1, max_size=6), min_size=2, max_size=6),
    st.lists(st.integers(1, 3), max_size=10),
)
def test_no_schedule_of_threads_loses_a_permit(of_threads, limits):
    bulkhead = Bulkhead(
        "llm",
        BulkheadParameters(limit=2, queue=3, queue_seconds=0.005, per_key_limit=1),
        key=lambda call: key_of(call["key"]),
        priority=lambda call: key_of(call["priority"]),
    )

    @bulkhead
    def ask(call):
        for _ in range(call["turns"]):
            threading.Event().wait(0.0005)
        if call["ends"] == "raises":
            raise Broken
        if call["ends"] != "returns":
            raise Interrupted

    def block(call):
        with bulkhead.of(key_of(call["key"]), key_of(call["priority"])):
            ask.__wrapped__(call)

    def run(calls):
        for call in calls:
            with suppress(Broken, Interrupted, TypeError, BulkheadFull):
                (block if call["as_block"] else ask)(call)

    threads = [threading.Thread(target=run, args=(calls,)) for calls in of_threads]
    for thread in threads:
        thread.start()
    for limit in limits:
        bulkhead.configure(BulkheadParameters(limit=limit, queue=3, queue_seconds=0.005))
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()

    assert_all_there(bulkhead, 2, ["u1", "u2", "1"])


@pytest.mark.parametrize("key", [None, "kim"])
def test_a_signal_at_any_moment_of_a_decorated_call_loses_no_permit(key):
    """Like Celery's soft time limits: the handler raises between two steps of this code."""
    bulkhead = Bulkhead("llm", BulkheadParameters(limit=3, queue=5), key=lambda: key)
    ask = bulkhead(lambda: None)
    randomness, interrupts = random.Random(7), 0

    def interrupt(*about):
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        while interrupts < 3000:
            try:
                signal.setitimer(signal.ITIMER_REAL, randomness.uniform(5e-6, 60e-6))
                while True:
                    ask()
            except Interrupted:
                interrupts += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

    assert_all_there(bulkhead, 3, ["kim"])


def test_block_left_in_another_context_releases_one_permit():
    bulkhead = Bulkhead("llm", BulkheadParameters(limit=2))
    inside, outside = contextvars.copy_context(), contextvars.copy_context()

    inside.run(bulkhead.__enter__)
    assert bulkhead.look().in_flight == 1
    outside.run(bulkhead.__exit__, None, None, None)
    assert bulkhead.look().in_flight == 0
    outside.run(bulkhead.__exit__, None, None, None)

    assert_all_there(bulkhead, 2)


def test_one_that_waited_when_its_process_was_forked_may_leave_in_the_child():
    permits = PermitPool(BulkheadParameters(limit=1, queue=1))
    permits.acquire()
    waiter = Waiter(None, 0, lambda: None)
    permits.enqueue(waiter)

    permits.after_fork()

    assert permits.dequeue(waiter) == "gone"


def test_reconfiguring_while_calls_wait_keeps_them_and_every_permit():
    async def main():
        one = BulkheadParameters(limit=1, queue=5, queue_seconds=PATIENCE)
        bulkhead = Bulkhead("llm", one)
        permit = await bulkhead.acquire_async("kim")
        waiting = [asyncio.ensure_future(bulkhead.acquire_async("kim")) for _ in range(4)]
        await asyncio.sleep(0)
        for parameters in (
            BulkheadParameters(limit=1, queue=0),
            BulkheadParameters(limit=2, queue=0, per_key_limit=1),
            BulkheadParameters(limit=1, queue=1, mode="adaptive"),
            one,
        ):
            bulkhead.configure(parameters)
            assert bulkhead.look().queued == 4
        permit.release("kim")
        for each in waiting:
            (await asyncio.wait_for(each, PATIENCE)).release("kim")
        assert_all_there(bulkhead, 1, ["kim"])

    asyncio.run(main())


def test_an_interrupt_at_any_step_of_the_queue_loses_no_permit():
    """Raise at the n-th call in the queue's modules, for each n until a call succeeds."""
    for n in range(200):
        bulkhead = Bulkhead("llm", BulkheadParameters(limit=1, queue=2, queue_seconds=PATIENCE))
        permit = bulkhead.acquire("kim")
        timer = threading.Timer(0.002, permit.release, ["kim"])
        timer.start()
        lines, second = Lines(n), None
        try:
            with lines:
                second = bulkhead.acquire("kim")
        except Interrupted:
            pass
        if second is not None:
            second.release("kim")
        timer.join(PATIENCE)
        look = bulkhead.look()
        assert (look.in_flight, look.queued) == (0, 0), lines.where
        if lines.left > 0:
            return
    raise AssertionError("no call gets through")


class Lines:
    """A profiler that raises at the n-th call of a function in the queue's modules."""

    def __init__(self, n):
        self.left = n + 1
        self.where = None

    def __enter__(self):
        sys.setprofile(self.trace)

    def __exit__(self, *about):
        sys.setprofile(None)

    def trace(self, frame, event, arg):
        name = frame.f_code.co_filename
        if event != "call" or not name.endswith(("bulkhead.py", "places.py", "queueing.py")):
            return
        if "test_" in name:
            return
        self.left -= 1
        if self.left == 0:
            self.where = (frame.f_code.co_name, frame.f_lineno)
            raise Interrupted


def test_a_response_that_was_read_before_it_came_gives_its_permit_back():
    """Like the response of a caching transport."""
    bulkhead = Bulkhead("llm", BulkheadParameters(limit=1))
    patterns = Patterns(bulkhead=bulkhead)
    inner = httpx.MockTransport(lambda request: httpx.Response(200, content=b"cached"))

    async def asend():
        async with httpx.AsyncClient(transport=AsyncTransport(patterns, inner)) as client:
            return [(await client.get("http://oracle/")).content for _ in range(2)]

    with httpx.Client(transport=Transport(patterns, inner)) as client:
        got = [client.get("http://oracle/").content for _ in range(2)]

    assert got == asyncio.run(asend()) == [b"cached"] * 2
    assert_all_there(bulkhead, 1)
