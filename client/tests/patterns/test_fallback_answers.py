"""The labels of answers: the shortened value, the source, and the age of a cached one."""

import asyncio

import pytest

from switchgear import Answer, Fallback, Policy
from switchgear.patterns.answers import latest_answer
from switchgear.patterns.caches import MISSING, MemoryCache
from tests.patterns.clocks import Clock
from tests.patterns.failing_calls import fails


def test_answer_of_a_policy_shows_its_value():
    answer = Policy("a").run(lambda: {"rows": 7})

    assert repr(answer) == "Answer(value={'rows': 7}, source='call', is_partial=False)"


def test_repr_of_a_stand_in_says_why_and_how_old_it_is():
    answer = Answer(7, "cache", True, ("Down: away",), age_seconds=12.3456)

    assert repr(answer) == (
        "Answer(value=7, source='cache', is_partial=True, causes=('Down: away',), age_seconds=12.3)"
    )


class Unshowable:
    def __repr__(self):
        raise RuntimeError("not ready")


class Wordy:
    def __repr__(self):
        return "w" * 10_000


@pytest.mark.parametrize(
    "value",
    [
        "secret " * 10_000,
        ["secret " * 100] * 1000,
        {f"key {n}" * 50: "secret" * 100 for n in range(1000)},
        Unshowable(),
        Wordy(),
        {"nested": [[["deep" * 50] * 50] * 50] * 50},
    ],
)
def test_repr_never_shows_more_than_the_beginning_of_a_value(value):
    assert len(repr(Answer(value))) < 170


def test_cached_answer_says_how_old_it_is():
    clock = Clock()
    answers = ["fresh"]
    fallback = Fallback("a", cache=MemoryCache(60, clock=clock), default="nothing")

    @fallback
    def ask(question):
        return answers.pop() if answers else fails()

    ask("why")
    assert latest_answer().age_seconds is None
    clock.goes(45.5)
    ask("why")

    assert latest_answer() == Answer("fresh", "cache", True, ("Down: no route to host",))
    assert latest_answer().age_seconds == 45.5
    clock.goes(60)
    ask("why")
    assert (latest_answer().source, latest_answer().age_seconds) == ("default", None)


def test_cache_of_others_needs_no_age():
    class Dictionary(dict):
        def get(self, key):
            return super().get(key, MISSING)

        def put(self, key, value):
            self[key] = value

    answers = ["fresh"]
    ask = Fallback("a", cache=Dictionary())(lambda: answers.pop() if answers else fails())
    ask()

    assert ask() == "fresh"
    assert (latest_answer().source, latest_answer().age_seconds) == ("cache", None)


def test_asynchronous_cache_may_give_an_age():
    class Shared:
        async def get(self, key):
            raise AssertionError("get_aged is there")

        async def get_aged(self, key):
            await asyncio.sleep(0)
            return "of before", 3.0

        async def put(self, key, value):
            raise AssertionError("nothing is good")

    async def ask():
        fails()

    answer = asyncio.run(Fallback("a", cache=Shared()).arun(ask))

    assert answer == Answer("of before", "cache", True, ("Down: no route to host",))
    assert answer.age_seconds == 3.0


def test_memory_cache_returns_values_with_their_age():
    clock = Clock()
    cache = MemoryCache(60, clock=clock)
    cache.put("a", 1)
    clock.goes(2)

    assert cache.get_aged("a") == (1, 2)
    assert cache.get_aged("b") == (MISSING, None)
