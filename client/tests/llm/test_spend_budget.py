"""Token budgets: admission, refusal, and exact accounting."""

import asyncio
import enum
import pickle
import threading
import uuid

import pytest

from switchgear import Fallback, Policy, Refused, RetryParameters
from switchgear.llm import SpendBudget, SpendExceeded
from switchgear.patterns.parameters import BreakerParameters, SpendParameters
from tests.patterns.clocks import Clock

MINUTE = SpendParameters(tokens=1000, window_seconds=60)
PER_USER = SpendParameters(tokens=1000, window_seconds=60, per_key_tokens=100)


@pytest.fixture
def clock():
    return Clock()


def budget(parameters=MINUTE, clock=None, **arguments):
    return SpendBudget("core->openai", parameters, clock=clock or Clock(), **arguments)


def test_reservation_that_does_not_fit_is_refused_before_anything_is_spent(clock):
    spending = budget(clock=clock)
    spending.reserve(900).settle(900)

    with pytest.raises(SpendExceeded) as refused:
        spending.reserve(101)

    assert isinstance(refused.value, Refused)
    assert (refused.value.limit, refused.value.per, refused.value.window_seconds) == (
        1000,
        None,
        60,
    )
    assert spending.look().spent == 900
    assert spending.reserve(100).reserved == 100


def test_reserved_tokens_count_until_they_are_settled():
    spending = budget()
    first = spending.reserve(600)

    with pytest.raises(SpendExceeded):
        spending.reserve(600)
    first.settle(100)
    second = spending.reserve(600)

    assert second.reserved == 600
    assert (spending.look().spent, spending.look().reserved) == (100, 600)


def test_spent_tokens_count_for_a_window_and_not_much_longer(clock):
    spending = budget(clock=clock)
    spending.reserve(1000).settle()

    clock.goes(59.9)
    with pytest.raises(SpendExceeded) as refused:
        spending.reserve(1)
    clock.goes(refused.value.retry_after)

    assert refused.value.retry_after <= 3.1
    assert spending.reserve(1000).reserved == 1000


def test_each_key_has_its_own_limit(clock):
    spending = budget(PER_USER, clock, key_label="user")
    spending.reserve(100, key="kim").settle()

    with pytest.raises(SpendExceeded) as refused:
        spending.reserve(1, key="kim")

    assert (refused.value.limit, refused.value.per) == (100, "user")
    assert spending.reserve(100, key="lee").reserved == 100
    assert spending.look("kim").spent == 100
    assert spending.look("nobody").spent == 0


def test_refusal_names_the_kind_of_key_and_never_the_key():
    spending = budget(PER_USER, key_label="user")
    held = spending.reserve(100, key="kim@example.com")

    with pytest.raises(SpendExceeded) as refused:
        spending.reserve(1, key="kim@example.com")

    assert str(refused.value) == (
        "the token budget of core->openai has no room for 1 tokens: 100 per user in 60 s are"
        " reserved or spent; retry when calls in flight have finished"
    )
    assert "kim" not in repr(refused.value) + repr(refused.value.args) + repr((spending, held))


class Tier(str, enum.Enum):  # noqa: UP042
    FREE = "free"


@pytest.mark.parametrize(
    ("key", "text"),
    [(7, "7"), (uuid.UUID(int=7), str(uuid.UUID(int=7))), (Tier.FREE, "free")],
)
def test_keys_are_texts_of_plain_values(key, text):
    spending = budget(PER_USER)
    held = spending.reserve(100, key=key)

    assert spending.look(text).reserved == held.reserved


@pytest.mark.parametrize("key", [{"id": 1}, ["kim"], b"kim", True, 1.5])
def test_key_of_another_type_is_refused_at_the_door(key):
    spending = budget(PER_USER)

    with pytest.raises(TypeError, match="key"):
        spending.reserve(1, key=key)
    assert spending.look().reserved == 0


@pytest.mark.parametrize("tokens", [-1, 1.5, True, "5", None])
def test_wrong_number_of_tokens_is_refused_without_effect(tokens):
    spending = budget()
    reservation = spending.reserve(10)

    with pytest.raises((TypeError, ValueError), match="tokens"):
        spending.reserve(tokens)
    with pytest.raises((TypeError, ValueError), match="tokens"):
        reservation.add(tokens)
    if tokens is not None:
        with pytest.raises((TypeError, ValueError), match="tokens"):
            reservation.settle(tokens)

    assert (spending.look().spent, spending.look().reserved) == (0, 10)


def test_more_than_the_whole_limit_never_fits():
    with pytest.raises(SpendExceeded) as refused:
        budget().reserve(1001)

    assert refused.value.retry_after is None


def test_retry_after_is_when_enough_has_fallen_out_of_the_window(clock):
    spending = budget(clock=clock)
    spending.reserve(500).settle()
    clock.goes(30)
    spending.reserve(500).settle()

    with pytest.raises(SpendExceeded) as few:
        spending.reserve(500)
    with pytest.raises(SpendExceeded) as many:
        spending.reserve(501)

    assert 30 <= few.value.retry_after <= 33
    assert 60 <= many.value.retry_after <= 63


def test_retry_after_is_that_of_the_limit_that_lasts_longest(clock):
    spending = budget(SpendParameters(tokens=100, per_key_tokens=100), clock)
    spending.reserve(60, key="kim").settle()
    clock.goes(30)
    spending.reserve(40, key="lee").settle()

    with pytest.raises(SpendExceeded) as refused:
        spending.reserve(100, key="kim")

    assert (refused.value.per, refused.value.retry_after > 50) == (None, True)


def test_spend_above_the_reservation_reduces_later_room():
    spending = budget()

    spending.reserve(10).settle(1500)

    assert spending.look().spent == 1500
    with pytest.raises(SpendExceeded):
        spending.reserve(1)


def test_streamed_tokens_are_counted_as_they_come():
    spending = budget()

    with spending.reserve(100) as reservation:
        for _ in range(3):
            reservation.add(10)
        assert (reservation.counted, spending.look().reserved) == (30, 100)

    assert (spending.look().spent, spending.look().reserved) == (30, 0)


def test_stream_may_go_beyond_its_reservation_while_there_is_room():
    spending = budget()
    with spending.reserve(10) as reservation:
        reservation.add(900)

        assert spending.look().reserved == 900
        with pytest.raises(SpendExceeded):
            spending.reserve(101)

    assert spending.look().spent == 900


def test_stream_without_room_is_cut_off_and_spends_its_tokens():
    spending = budget(PER_USER)

    def stream():
        with spending.reserve(10, key="kim") as reservation:
            for _ in range(100):
                reservation.add(30)
                yield "word"

    words = []
    with pytest.raises(SpendExceeded):
        words.extend(stream())

    assert spending.look("kim").spent == 120
    assert spending.look("kim").reserved == spending.look().reserved == 0


def test_abandoned_stream_spends_its_tokens():
    spending = budget()

    def stream():
        with spending.reserve(100) as reservation:
            for _ in range(100):
                reservation.add(5)
                yield "word"

    words = stream()
    next(words)
    words.close()

    assert (spending.look().spent, spending.look().reserved) == (5, 0)


def test_block_without_a_count_spends_its_reservation():
    spending = budget()

    with spending.reserve(100):
        pass

    assert spending.look().spent == 100


def test_failed_call_is_refunded():
    spending = budget()

    with pytest.raises(ConnectionError), spending.reserve(100):
        raise ConnectionError

    assert (spending.look().spent, spending.look().reserved) == (0, 0)


def test_refused_call_in_a_policy_spends_nothing_and_is_not_counted():
    policy = Policy(
        "core->openai",
        budget=MINUTE,
        breaker=BreakerParameters(failure_count=1),
        retry=RetryParameters(attempts=3),
        fallback=Fallback("a", default="Not now."),
    )
    calls = []

    @policy
    def ask(prompt):
        with policy.budget.reserve(2000):
            calls.append(prompt)

    assert ask("why") == "Not now."
    assert policy.breaker.state == "closed"
    assert policy.counters.counted()["retry"] == 0
    assert (calls, policy.budget.look().reserved) == ([], 0)


def test_reservation_ends_once():
    reservation = budget().reserve(100)
    reservation.refund()

    for again in (reservation.refund, reservation.settle, lambda: reservation.add(1)):
        with pytest.raises(RuntimeError, match="settled"):
            again()


def test_dropped_reservation_is_given_back():
    spending = budget()
    spending.reserve(1000)

    assert spending.reserve(1000).reserved == 1000


def test_dropped_reservation_spends_its_counted_tokens():
    spending = budget()
    spending.reserve(1000).add(400)

    assert (spending.look().spent, spending.look().reserved) == (400, 0)


def test_more_keys_than_there_is_room_for_share_one_limit(clock, caplog):
    spending = budget(SpendParameters(per_key_tokens=100, window_seconds=60), clock, max_keys=2)
    for key in ("a", "b", "c"):
        spending.reserve(60, key=key).settle()

    with pytest.raises(SpendExceeded):
        spending.reserve(60, key="d")
    assert len(caplog.records) == 1
    assert spending.reserve(40, key="a").reserved == 40

    clock.goes(64)
    assert spending.reserve(100, key="d").reserved == 100


def test_key_with_an_open_reservation_is_never_forgotten(clock):
    spending = budget(SpendParameters(per_key_tokens=100, window_seconds=60), clock, max_keys=1)
    held = spending.reserve(0, key="a")
    clock.goes(1000)
    spending.reserve(1, key="b").settle()

    held.add(100)

    with pytest.raises(SpendExceeded):
        spending.reserve(1, key="a")


def test_new_limit_applies_to_tokens_already_spent():
    spending = budget()
    spending.reserve(900).settle()

    spending.configure(SpendParameters(tokens=500))
    with pytest.raises(SpendExceeded):
        spending.reserve(1)
    spending.configure(SpendParameters(tokens=2000))

    assert spending.reserve(1100).reserved == 1100


def test_budget_without_limits_counts_and_refuses_none():
    spending = SpendBudget("a")

    spending.reserve(10**9).settle()

    assert spending.look().spent == 10**9


@pytest.mark.parametrize(
    "wrong",
    [
        {"tokens": 0},
        {"per_key_tokens": 0},
        {"window_seconds": 0},
        {"window_seconds": float("inf")},
    ],
)
def test_wrong_parameters_are_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        SpendParameters(**wrong)


def test_wrong_type_of_parameters_is_refused():
    with pytest.raises(TypeError, match="SpendParameters"):
        SpendBudget("a", 1000)
    with pytest.raises(ValueError, match="max_keys"):
        SpendBudget("a", max_keys=0)


def test_refusal_comes_whole_out_of_another_process():
    error = SpendExceeded("core->openai", 5, 100, "user", 60.0, 2.5)

    copied = pickle.loads(pickle.dumps(error))

    assert (str(copied), copied.retry_after) == (str(error), 2.5)


def test_cancelled_calls_give_everything_back():
    spending = budget()

    async def call(begun):
        async with spending.reserve(100):
            begun.set()
            await asyncio.sleep(60)

    async def scene():
        begun = [asyncio.Event() for _ in range(10)]
        tasks = [asyncio.ensure_future(call(each)) for each in begun]
        for each in begun:
            await each.wait()
        with pytest.raises(SpendExceeded):
            spending.reserve(1)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(scene())
    assert (spending.look().spent, spending.look().reserved) == (0, 0)


def test_threads_together_never_get_more_than_the_limit():
    spending = budget(SpendParameters(tokens=500, window_seconds=3600))
    start, granted = threading.Barrier(8), []

    def spend():
        start.wait()
        for _ in range(100):
            try:
                with spending.reserve(10) as reservation:
                    reservation.settle(7)
                    granted.append(7)
            except SpendExceeded:
                pass

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    # One more only while 10 fit: the last one may leave up to 9.
    assert 491 <= sum(granted) <= 500
    assert (spending.look().spent, spending.look().reserved) == (sum(granted), 0)
