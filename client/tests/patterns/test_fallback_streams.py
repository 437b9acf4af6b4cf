"""A stream that fails before its first item is answered by another one, and never after it."""

import asyncio
import inspect

import pytest

from switchgear import Answer, Fallback, SwitchEngaged, cancellation
from switchgear.failures.classification import Catastrophic
from switchgear.patterns.answers import latest_answer
from switchgear.patterns.caches import MemoryCache
from switchgear.patterns.fallback_targets import FallbackTarget
from tests.patterns.failing_calls import Down


def failing(question):
    raise Down("no route to host")
    yield question


def second(question):
    yield from ("from", "the", "second")


async def afailing(question):
    raise Down("no route to host")
    yield question


async def asecond(question):
    for each in ("from", "the", "second"):
        await asyncio.sleep(0)
        yield each


def listed(stream):
    """Return the items of a stream of either kind."""
    if inspect.isgenerator(stream):
        return list(stream)

    async def collected():
        return [each async for each in stream]

    return asyncio.run(collected())


KINDS = pytest.mark.parametrize(
    ("fails", "target"), [(failing, second), (afailing, asecond)], ids=["plain", "async"]
)


@KINDS
def test_stream_that_fails_before_its_first_item_is_answered_by_a_target(fails, target):
    fallback = Fallback("a", target, default="nothing")

    assert listed(fallback(fails)("why")) == ["from", "the", "second"]
    assert fallback.count_answers() == {target.__name__: 1}
    assert fallback.counters.counted()["fallback"] == 1


@KINDS
def test_decorated_stream_keeps_its_kind_and_signature(fails, target):
    decorated = Fallback("a", target)(fails)

    assert inspect.isgeneratorfunction(decorated) == inspect.isgeneratorfunction(fails)
    assert inspect.isasyncgenfunction(decorated) == inspect.isasyncgenfunction(fails)
    assert str(inspect.signature(decorated)) == "(question)"


def test_latest_answer_tells_the_source_from_the_first_item_to_the_end():
    other = Fallback("other", default="other")
    stream = Fallback("a", second)(failing)("why")

    next(stream)
    first = latest_answer()
    other.run(lambda: "meanwhile")
    assert latest_answer().value == "meanwhile"
    rest = list(stream)

    assert first == Answer(None, "second", True, ("Down: no route to host",))
    assert rest == ["the", "second"]
    assert latest_answer() == first


def test_latest_answer_tells_the_source_of_an_asynchronous_stream():
    async def scene():
        stream = Fallback("a", asecond)(afailing)("why")
        items = [each async for each in stream]
        return items, latest_answer()

    items, latest = asyncio.run(scene())

    assert items == ["from", "the", "second"]
    assert latest == Answer(None, "asecond", True, ("Down: no route to host",))


def test_stream_that_works_is_its_own_answer():
    stream = Fallback("a", failing)(second)("why")

    assert list(stream) == ["from", "the", "second"]
    assert latest_answer() == Answer(None)


@pytest.mark.parametrize("is_async", [False, True])
def test_error_after_the_first_item_is_raised_as_it_is(is_async):
    def breaks(question):
        yield "half"
        raise Down("cut off")

    async def abreaks(question):
        yield "half"
        raise Down("cut off")

    calls = []
    fallback = Fallback("a", lambda: calls.append(1), default="nothing")
    stream = fallback(abreaks if is_async else breaks)("why")
    items = []

    async def take():
        async for each in stream:
            items.append(each)

    def take_plain():
        for each in stream:
            items.append(each)

    with pytest.raises(Down, match="cut off"):
        asyncio.run(take()) if is_async else take_plain()

    assert (items, calls) == (["half"], [])


def test_error_after_the_first_item_of_a_target_is_raised_as_it_is():
    def breaks(question):
        yield "half"
        raise TimeoutError("cut off")

    stream = Fallback("a", breaks, second)(failing)("why")

    assert next(stream) == "half"
    with pytest.raises(TimeoutError):
        next(stream)


def test_targets_are_tried_in_order_until_one_yields_an_item():
    def fails_too(question, cause):
        assert isinstance(cause, Down)
        raise TimeoutError("slow")
        yield

    stream = Fallback("a", fails_too, second, default="nothing")(failing)("why")

    assert list(stream) == ["from", "the", "second"]
    assert latest_answer().causes == ("Down: no route to host", "TimeoutError: slow")


def test_empty_stream_is_an_answer():
    def empty(question):
        yield from ()
        return "its end"

    def outer():
        return (yield from Fallback("a", second)(empty)("why"))

    stream = outer()

    with pytest.raises(StopIteration) as ended:
        next(stream)
    assert ended.value.value == "its end"


@pytest.mark.parametrize(
    ("target", "items"),
    [
        (lambda question: ["a", "b"], ["a", "b"]),
        (lambda question: iter("ab"), ["a", "b"]),
        (lambda question: "a whole text", ["a whole text"]),
        (lambda question: {"rows": 1}, [{"rows": 1}]),
        (lambda question: b"bytes", [b"bytes"]),
        (lambda question: None, [None]),
    ],
)
@pytest.mark.parametrize("fails", [failing, afailing])
def test_target_that_is_no_generator_gives_its_items_or_is_the_only_one(fails, target, items):
    assert listed(Fallback("a", target)(fails)("why")) == items


@pytest.mark.parametrize("kind", ["coroutine", "async iterator", "coroutine of a stream"])
def test_async_stream_accepts_every_kind_of_target_result(kind):
    class Items:
        def __init__(self):
            self.left = ["a", "b"]

        def __aiter__(self):
            return self

        async def __anext__(self):
            if not self.left:
                raise StopAsyncIteration
            return self.left.pop(0)

    async def whole(question):
        return "ab"

    async def opens(question):
        return asecond(question)

    targets = {
        "coroutine": (whole, ["ab"]),
        "async iterator": (lambda question: Items(), ["a", "b"]),
        "coroutine of a stream": (opens, ["from", "the", "second"]),
    }
    target, items = targets[kind]

    assert listed(Fallback("a", target)(afailing)("why")) == items


@pytest.mark.parametrize("fails", [failing, afailing])
@pytest.mark.parametrize(
    ("default", "items"), [("Not now.", ["Not now."]), (["Not", "now."], ["Not", "now."]), ([], [])]
)
def test_default_of_a_stream_is_its_items_or_the_only_one(fails, default, items):
    fallback = Fallback("a", default=default)
    ask = fallback(fails)

    assert listed(ask("why")) == items
    assert listed(ask("why")) == items
    assert fallback.count_answers() == {"default": 2}


def test_default_factory_may_give_a_new_iterator_each_time():
    ask = Fallback("a", default_factory=lambda: iter("ab"))(failing)

    assert [list(ask("why")), list(ask("why"))] == [["a", "b"], ["a", "b"]]


def test_first_error_is_raised_when_all_targets_fail():
    with pytest.raises(Down) as raised:
        list(Fallback("a", failing)(failing)("why"))

    assert raised.value.__notes__ == ["fallback failing of a: Down: no route to host"]
    assert latest_answer() is None


def test_catastrophic_stream_is_never_answered_for():
    def leaks(question):
        raise Catastrophic("other tenants' rows")
        yield

    with pytest.raises(Catastrophic):
        list(Fallback("a", second)(leaks)("why"))


def test_sent_values_and_thrown_errors_reach_the_stream_that_answers():
    def echo(question):
        got = yield "ready"
        while True:
            try:
                got = yield got
            except KeyError as error:
                got = f"caught {error}"

    stream = Fallback("a", echo)(failing)("why")

    assert [next(stream), stream.send("one"), stream.send("two")] == ["ready", "one", "two"]
    assert stream.throw(KeyError("key")) == "caught 'key'"


def test_sent_values_and_thrown_errors_reach_an_asynchronous_stream():
    async def echo(question):
        got = yield "ready"
        while True:
            try:
                got = yield got
            except KeyError as error:
                got = f"caught {error}"

    async def scene():
        stream = Fallback("a", echo)(afailing)("why")
        got = [await anext(stream), await stream.asend("one")]
        got.append(await stream.athrow(KeyError("key")))
        await stream.aclose()
        return got

    assert asyncio.run(scene()) == ["ready", "one", "caught 'key'"]


@pytest.mark.parametrize("is_async", [False, True])
def test_stream_that_is_left_is_closed(is_async):
    ended = []

    def watched(question):
        try:
            yield "a"
            yield "b"
        finally:
            ended.append("closed")

    async def awatched(question):
        try:
            yield "a"
            yield "b"
        finally:
            ended.append("closed")

    async def scene():
        stream = Fallback("a", awatched)(afailing)("why")
        await anext(stream)
        await stream.aclose()

    if is_async:
        asyncio.run(scene())
    else:
        stream = Fallback("a", watched)(failing)("why")
        next(stream)
        stream.close()

    assert ended == ["closed"]


def test_cancelled_stream_ends_the_task():
    async def hangs(question):
        await asyncio.sleep(60)
        yield

    async def scene():
        async def take():
            async for _ in Fallback("a", asecond, default="nothing")(hangs)("why"):
                pass

        task = asyncio.ensure_future(take())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scene())


def test_plain_stream_can_not_have_a_target_that_must_be_awaited():
    async def whole(question):
        return "ab"

    for target in (whole, asecond):
        with pytest.raises(TypeError, match="can only be awaited"):
            Fallback("a", target)(failing)
    late = Fallback("a", lambda question: asecond(question), default="nothing")(failing)
    assert list(late("why")) == ["nothing"]
    assert "asynchronous" in latest_answer().causes[1]


def test_coroutine_that_a_plain_target_gives_is_a_failure():
    async def whole(question):
        return "ab"

    ask = Fallback("a", lambda question: whole(question), default="nothing")(failing)

    assert list(ask("why")) == ["nothing"]
    assert "coroutine" in latest_answer().causes[1]


def test_parameters_for_whole_answers_are_rejected_for_a_stream():
    with pytest.raises(TypeError, match="is_good"):
        Fallback("a", second, is_good=bool)(failing)
    with pytest.raises(TypeError, match="cache"):
        Fallback("a", cache=MemoryCache(60))(failing)


def test_cache_beside_targets_takes_no_part_in_a_stream():
    cache = MemoryCache(60)
    ask = Fallback("a", second, cache=cache)(second)

    list(ask("why"))

    assert not cache._entries


def test_partial_answer_inside_makes_the_stream_partial():
    inner = Fallback("inner", default=0)

    def rows(question):
        yield 1
        yield inner.run(fails_at_once).value

    def fails_at_once():
        raise Down("away")

    stream = Fallback("outer", second)(rows)("why")

    next(stream)
    assert not latest_answer().is_partial
    assert list(stream) == [0]
    assert latest_answer() == Answer(None, "call", True)


def test_partial_answer_of_the_consumer_does_not_make_the_stream_partial():
    inner = Fallback("inner", default=0)
    stream = Fallback("outer", failing)(second)("why")

    def fails_at_once():
        raise Down("away")

    for _ in stream:
        inner.run(fails_at_once)

    assert latest_answer() == Answer(None)


def test_outer_fallback_does_not_cache_a_partial_stream():
    cache = MemoryCache(60)
    words = Fallback("inner", default=["less"])(failing)

    @Fallback("outer", cache=cache)
    def page():
        return " ".join(words("why"))

    assert page() == "less"
    assert latest_answer() == Answer("less", "call", True)
    assert not cache._entries


@pytest.mark.parametrize("is_async", [False, True])
def test_kill_before_the_first_item_stops_the_targets(console, is_async):
    gear = console.client(service="core")
    calls = []

    def engages(question):
        console.engage("feature:chat")
        raise Down("away")
        yield

    async def aengages(question):
        console.engage("feature:chat")
        raise Down("away")
        yield

    fallback = Fallback("a", calls.append, default="nothing")
    guarded = gear.guard(feature="chat")(fallback(aengages if is_async else engages))

    with pytest.raises(SwitchEngaged) as raised:
        listed(guarded("why"))

    assert isinstance(raised.value.__cause__, Down)
    assert calls == []


def test_kill_wakes_the_target_of_a_policy_between_two_items(console):
    gear = console.client(service="core")

    def waits(question):
        yield "half"
        console.engage("feature:chat")
        cancellation.sleep(60)

    policy = gear.policy("core->model", feature="chat", fallback=waits)
    stream = policy(failing)("why")

    assert next(stream) == "half"
    with pytest.raises(SwitchEngaged):
        next(stream)
    assert cancellation.current_scope.get() is None


def test_named_target_may_be_a_stream():
    fallback = Fallback("a", FallbackTarget(name="small", call=second))

    assert list(fallback(failing)("why")) == ["from", "the", "second"]
    assert latest_answer() == Answer(None, "small", False, ("Down: no route to host",))
