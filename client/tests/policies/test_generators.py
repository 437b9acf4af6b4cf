"""A stream of a policy is tried again and answered for until its first item, and never after it."""

import asyncio
import logging

import pytest

from switchgear import BreakerParameters, CircuitOpen, Fallback, Policy, RetryParameters
from switchgear.patterns.answers import latest_answer
from switchgear.patterns.caches import MemoryCache
from switchgear.testing import Console

NAME = "oracle->openai"
RETRY = RetryParameters(attempts=3, base_seconds=0)
CHAIN = [{"provider": "openai", "model": "big"}, {"provider": "openai", "model": "small"}]


class Model:
    """A service whose streams fail before their first item `failures` times, then yield three."""

    def __init__(self, failures, error=TimeoutError):
        self.failures, self.error = failures, error
        self.begun = self.closed = 0

    def stream(self, prompt):
        self.begun += 1
        if self.begun <= self.failures:
            raise self.error("slow")
        try:
            yield from ("a", "b", "c")
        finally:
            self.closed += 1

    async def astream(self, prompt):
        await asyncio.sleep(0)
        for each in self.stream(prompt):
            yield each

    def broken(self, prompt):
        self.begun += 1
        yield "a"
        raise self.error("cut off")


async def items_of(stream):
    return [each async for each in stream]


def test_stream_is_tried_again_until_its_first_item():
    model = Model(failures=2)
    policy = Policy("a", retry=RETRY)

    assert list(policy(model.stream)("why")) == ["a", "b", "c"]
    assert (model.begun, model.closed) == (3, 1)
    assert policy.counters.counted()["retry"] == 2


def test_asynchronous_stream_is_tried_again_until_its_first_item():
    model = Model(failures=2)

    items = asyncio.run(items_of(Policy("a", retry=RETRY)(model.astream)("why")))

    assert items == ["a", "b", "c"]
    assert model.begun == 3


def test_stream_that_breaks_after_its_first_item_is_not_tried_again():
    model, asked = Model(failures=0), []
    policy = Policy("a", retry=RETRY, fallback=asked.append)
    stream = policy(model.broken)("why")

    assert next(stream) == "a"
    with pytest.raises(TimeoutError, match="cut off"):
        next(stream)
    assert (model.begun, asked) == (1, [])


def test_each_try_of_a_stream_asks_the_breaker():
    model = Model(failures=9)
    policy = Policy("a", retry=RETRY, breaker=BreakerParameters(failure_count=2))

    with pytest.raises(CircuitOpen):
        list(policy(model.stream)("why"))

    assert model.begun == 2


def test_tries_of_a_stream_give_their_place_back():
    model = Model(failures=2)
    policy = Policy("a", retry=RETRY, bulkhead="optional")

    assert list(policy(model.stream)("why")) == ["a", "b", "c"]
    assert policy.bulkhead.look().in_flight == 0


def test_fallback_of_a_policy_streams_after_the_last_try():
    model = Model(failures=9)
    policy = Policy("a", retry=RETRY, fallback=lambda prompt: ["instead of", prompt])

    assert list(policy(model.stream)("why")) == ["instead of", "why"]
    assert model.begun == 3
    assert latest_answer().source == "<lambda>"


def test_methods_stream_through_a_policy():
    class Chat:
        @Policy("a", retry=RETRY, fallback=Fallback("a", default="Not now."))
        def stream(self, prompt):
            raise TimeoutError(prompt)
            yield

    assert list(Chat().stream("why")) == ["Not now."]


def test_chain_of_the_console_streams():
    asked = []

    def openai(prompt, *, model):
        asked.append(model)
        yield from (model, prompt)

    console = Console()
    policy = console.client().policy(NAME, providers={"openai": openai})
    ask = policy(Model(failures=9).stream)
    with pytest.raises(TimeoutError):
        list(ask("why"))

    console.configure(NAME, {"fallback": {"chain": CHAIN}})

    assert list(ask("why")) == ["small", "why"]
    assert asked == ["small"]
    assert latest_answer().source == "openai/small"


def test_retry_of_the_console_tries_a_stream_again():
    model, console = Model(failures=2), Console()
    policy = console.client().policy(NAME)
    ask = policy(model.stream)
    console.configure(NAME, {"retry": {"attempts": 3, "base_seconds": 0}})

    assert list(ask("why")) == ["a", "b", "c"]


def test_chain_that_does_not_suit_a_plain_stream_leaves_it_as_it_was(caplog):
    async def later(prompt, *, model):
        yield prompt

    console = Console()
    ask = console.client().policy(NAME, providers={"openai": later})(Model(failures=0).stream)
    with caplog.at_level(logging.WARNING, "switchgear"):
        console.configure(NAME, {"fallback": {"chain": CHAIN}})
        assert [list(ask("why")) for _ in range(3)] == [["a", "b", "c"]] * 3

    assert sum("is unchanged" in one.getMessage() for one in caplog.records) == 1


def test_request_that_is_too_long_streams_once_more_after_truncation():
    class TooLong(Exception):
        code = "context_length_exceeded"

    asked = []

    def stream(prompt):
        asked.append(prompt)
        if len(prompt) > 3:
            raise TooLong
        yield prompt

    def truncate(args, kwargs):
        return (args[0][:3],), kwargs

    assert list(Policy("a", retry=RETRY, truncate=truncate)(stream)("why not")) == ["why"]
    assert asked == ["why not", "why"]


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"retry": RETRY, "retry_result": bool}, "retry_result"),
        ({"fallback": Fallback("a", default=1, is_good=bool)}, "is_good"),
        ({"cache": MemoryCache(60)}, "cache"),
    ],
)
def test_what_judges_or_keeps_whole_answers_is_refused_when_decorating(given, what):
    with pytest.raises(TypeError, match=what):
        Policy("a", **given)(Model(failures=0).stream)
