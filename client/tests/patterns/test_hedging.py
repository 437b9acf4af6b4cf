"""Hedged calls: another attempt beside a slow one, within budget and deadline."""

import asyncio
import contextlib
import functools
from contextvars import ContextVar

import pytest

from switchgear import journal
from switchgear.failures.classification import Catastrophic
from switchgear.patterns.counters import Counters
from switchgear.patterns.deadline import Deadline, DeadlineExceeded
from switchgear.patterns.hedging import Hedge
from switchgear.patterns.idempotency import idempotency_key, request_key
from switchgear.patterns.parameters import BreakerParameters, BulkheadParameters, RetryParameters
from switchgear.patterns.propagation import outgoing
from switchgear.patterns.retry import Retry
from switchgear.patterns.retry_budget import RetryBudget
from switchgear.policies.policy import Policy
from switchgear.refusals import BulkheadFull
from switchgear.testing import Console
from tests.patterns.clocks import Clock

SOON = 0.005
FOREVER = 60.0


class Callee:
    """A callee whose attempts do the next of `turns`: raise an error, wait forever, or return."""

    def __init__(self, *turns):
        self.turns = list(turns)
        self.begun = 0
        self.cancelled = []
        self.keys = []
        self.hedged, self.failed = asyncio.Event(), asyncio.Event()

    async def __call__(self):
        n, self.begun = self.begun, self.begun + 1
        self.keys.append((idempotency_key(), request_key(b"POST"), request_key(b"POST")))
        turn = self.turns[n]
        if n:
            self.hedged.set()
        if turn == "hangs":
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled.append(n)
                raise
        if turn == "after the hedge failed":
            await self.failed.wait()
        if isinstance(turn, Exception):
            if n:
                self.failed.set()
            raise turn
        return turn


def hedged(callee, after_seconds=SOON, **given):
    return Hedge("core->oracle", after_seconds, **given)(callee)


def run(make):
    """Run the coroutine that `make` returns in an event loop of its own."""

    async def main():
        return await asyncio.wait_for(make(), 5)

    return asyncio.run(main())


def test_a_slow_call_is_answered_by_its_hedge_and_the_slow_one_is_cancelled():
    callee = Callee("hangs", "fine")

    assert run(hedged(callee)) == "fine"
    assert callee.begun == 2
    assert callee.cancelled == [0]


def test_a_quick_call_is_made_once():
    callee = Callee("fine")

    assert run(hedged(callee, FOREVER)) == "fine"
    assert callee.begun == 1


def test_a_quick_error_is_raised_without_a_hedge():
    callee = Callee(ConnectionError("away"))

    with pytest.raises(ConnectionError):
        run(hedged(callee, FOREVER))
    assert callee.begun == 1


@pytest.mark.parametrize("error", [ConnectionError("away"), BulkheadFull("b", "queue is full")])
def test_an_error_of_the_hedge_does_not_end_the_call(error):
    callee = Callee("after the hedge failed", error)

    assert run(hedged(callee)) == "after the hedge failed"
    assert callee.begun == 2


def test_if_all_fail_the_error_of_the_first_attempt_is_raised():
    class Failing(Callee):
        async def __call__(self):
            if await super().__call__() == "after the hedge failed":
                raise ConnectionError("first")

    callee = Failing("after the hedge failed", BulkheadFull("b", "queue is full"))

    with pytest.raises(ConnectionError, match="first"):
        run(hedged(callee))


def test_a_catastrophic_failure_ends_the_call_at_once():
    callee = Callee("hangs", Catastrophic("leak"))

    with pytest.raises(Catastrophic):
        run(hedged(callee))
    assert callee.cancelled == [0]


@pytest.mark.parametrize("most", [1, 3])
def test_no_more_hedges_begin_than_allowed(most):
    callee = Callee(*["hangs"] * most, "fine")

    assert run(hedged(callee, max_hedges=most)) == "fine"
    assert callee.begun == most + 1
    assert callee.cancelled == list(range(most))


def test_without_budget_no_hedge_begins_and_each_hedge_takes_from_it():
    budget = RetryBudget(0, 0.1)

    async def make_two_calls():
        first, second = Callee("hangs", "fine"), Callee("hangs", "fine")
        answer = await hedged(first, budget=budget)()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(hedged(second, budget=budget)(), 20 * SOON)
        return answer, first.begun, second.begun, second.cancelled

    assert run(make_two_calls) == ("fine", 2, 1, [0])


def test_a_call_counts_once_for_the_budget_whether_a_retry_is_around_or_not():
    budget, clock = RetryBudget(0.5, 0), Clock()
    retry = Retry("core->oracle", budget=budget, clock=clock)

    run(hedged(Callee("fine"), FOREVER, budget=budget))
    assert not budget.take()
    run(retry(hedged(Callee("fine"), FOREVER, budget=budget)))

    assert budget.take()
    assert not budget.take()


def test_hedge_is_counted_as_a_retry_and_noted():
    counters, entries = Counters(), []
    remove = journal.add_hook(entries.append)
    try:
        run(hedged(Callee("hangs", "fine"), counters=counters))
    finally:
        remove()

    assert counters.counted()["retry"] == 1
    assert [(each.name, each.about, dict(each.fields)) for each in entries] == [
        ("call_hedged", "core->oracle", {"attempt": 1, "after_seconds": SOON})
    ]


def test_all_attempts_have_one_key_and_the_same_keys_for_their_requests():
    callee = Callee("hangs", "fine")
    run(hedged(callee))

    assert callee.keys[0] == callee.keys[1]
    assert None not in callee.keys[0]
    assert len(set(callee.keys[0])) == 3


def test_calls_of_one_attempt_of_a_retry_have_keys_of_their_own_the_same_in_the_next():
    callees = []

    @Retry(sleep=lambda seconds: None)
    async def order_twice():
        pair = [Callee("hangs", "fine"), Callee("hangs", "fine")]
        callees.append(pair)
        for each in pair:
            await hedged(each)()
        if len(callees) < 2:
            raise ConnectionError("away")

    run(order_twice)

    [[first, second], [third, fourth]] = callees
    requests = {key for keys in first.keys + second.keys for key in keys[1:]}
    assert len(requests) == 4
    assert (first.keys, second.keys) == (third.keys, fourth.keys)
    assert first.keys[0] == first.keys[1]


def test_each_attempt_has_a_copy_of_the_context():
    seen = ContextVar("seen", default=0)

    async def call():
        found = seen.get()
        seen.set(found + 1)
        if not found and not begun:
            begun.append(1)
            await asyncio.Event().wait()
        return found

    begun = []

    async def main():
        seen.set(7)
        return await hedged(call)(), seen.get()

    assert run(main) == (7, 7)


def test_a_retry_inside_retries_and_no_header_says_that_it_is_repeated():
    tries = []

    @Retry(sleep=lambda seconds: None)
    async def flaky():
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError("away")
        return "fine"

    async def read_headers():
        return outgoing()

    assert run(hedged(flaky, FOREVER)) == "fine"
    assert run(hedged(read_headers, FOREVER)) == {}


def test_a_cancelled_call_cancels_and_awaits_all_attempts():
    callee = Callee("hangs", "hangs")

    async def main():
        task = asyncio.create_task(hedged(callee)())
        await callee.hedged.wait()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return sorted(callee.cancelled)

    assert run(main) == [0, 1]


def test_a_deadline_ends_all_attempts():
    callee = Callee("hangs", "hangs")

    with pytest.raises(DeadlineExceeded):
        run(Deadline(10 * SOON)(hedged(callee)))
    assert sorted(callee.cancelled) == [0, 1]


def test_no_hedge_begins_after_the_deadline():
    callee, clock = Callee("hangs", "fine"), Clock()

    async def late():
        clock.goes(2)
        return await callee()

    with pytest.raises(TimeoutError):
        run(
            lambda: asyncio.wait_for(
                Deadline(1, cuts=False, clock=clock)(hedged(late, 10 * SOON))(), 40 * SOON
            )
        )
    assert callee.begun == 1


def plain():
    return "fine"


async def later():
    return "fine"


async def stream():
    yield "fine"


@pytest.mark.parametrize("function", [plain, functools.wraps(later)(lambda: later()), stream])
def test_only_a_coroutine_function_can_be_hedged(function):
    with pytest.raises(TypeError):
        hedged(function)
    with pytest.raises(TypeError):
        Policy("core->oracle", hedge_after_seconds=1, is_idempotent=True)(function)


@pytest.mark.parametrize(
    ("given", "kind", "argument"),
    [
        ({"name": 1}, TypeError, "name"),
        ({"after_seconds": None}, TypeError, "after_seconds"),
        ({"after_seconds": "1"}, TypeError, "after_seconds"),
        ({"after_seconds": 0}, ValueError, "after_seconds"),
        ({"max_hedges": 1.5}, TypeError, "max_hedges"),
        ({"max_hedges": 0}, ValueError, "max_hedges"),
        ({"max_hedges": 11}, ValueError, "max_hedges"),
        ({"budget": 0.2}, TypeError, "budget"),
        ({"counters": {}}, TypeError, "counters"),
    ],
)
def test_a_wrong_argument_is_refused_by_name(given, kind, argument):
    with pytest.raises(kind, match=argument):
        Hedge(**{"name": "core->oracle", "after_seconds": 1, **given})


@pytest.mark.parametrize(
    ("given", "kind", "says"),
    [
        ({}, ValueError, "hedge_after_seconds needs is_idempotent=True"),
        ({"is_idempotent": False}, ValueError, "hedge_after_seconds needs is_idempotent=True"),
        ({"is_idempotent": "yes"}, TypeError, "is_idempotent"),
        ({"hedge_after_seconds": "1", "is_idempotent": True}, TypeError, "hedge_after_seconds"),
    ],
)
def test_a_policy_hedges_only_calls_marked_idempotent(given, kind, says):
    given = {"hedge_after_seconds": 1, **given}
    with pytest.raises(kind, match=says):
        Policy("core->oracle", **given)


def test_a_policy_without_a_hedge_may_be_marked_idempotent():
    assert Policy("core->oracle", is_idempotent=True)(plain)() == "fine"


def policy_of(**given):
    return Policy("core->oracle", hedge_after_seconds=SOON, is_idempotent=True, **given)


def test_each_attempt_is_a_call_for_the_breaker_and_the_bulkhead_of_a_policy():
    policy = policy_of(bulkhead=BulkheadParameters(limit=1))
    callee = Callee("after the hedge failed", "fine")

    def refused(entry):
        if entry.name == "bulkhead_full":
            callee.failed.set()

    remove = journal.add_hook(refused)
    try:
        assert run(policy(callee)) == "after the hedge failed"
    finally:
        remove()
    assert callee.begun == 1
    counted = policy.counters.counted()
    assert (counted["success"], counted["failure"], counted["retry"]) == (1, 0, 1)


def test_a_loser_counts_neither_as_a_success_nor_as_a_failure():
    policy = policy_of(breaker=BreakerParameters(consecutive_failures=1, minimum_calls=1))

    assert run(policy(Callee("hangs", "fine"))) == "fine"
    counted = policy.counters.counted()
    assert (counted["success"], counted["failure"], counted["timeout"]) == (1, 0, 0)


def test_a_retry_of_a_policy_is_around_its_hedges():
    policy = policy_of(retry=RetryParameters(attempts=2, base_seconds=0))
    callee = Callee(ConnectionError("away"), "hangs", "fine")

    assert run(policy(callee)) == "fine"
    assert policy.counters.counted()["retry"] == 2
    assert callee.keys[0] == callee.keys[1] == callee.keys[2]


def test_a_policy_answers_by_a_hedge_also_when_it_runs_a_function():
    answer = run(lambda: policy_of().arun(Callee("hangs", "fine")))

    assert answer.value == "fine"


def test_engaged_switch_lets_no_hedge_begin():
    console = Console()
    policy = console.client().policy(
        "core->model", feature="chat", hedge_after_seconds=0.02, is_idempotent=True
    )
    begun = []

    @policy
    async def ask():
        begun.append(1)
        console.engage("feature:chat")
        await asyncio.sleep(0.1)
        return "slow"

    assert asyncio.run(ask()) == "slow"
    assert len(begun) == 1
