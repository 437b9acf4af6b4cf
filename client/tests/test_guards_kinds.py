"""Whatever is guarded stays of its kind, and is asked for when its body is about to run."""

import asyncio
import functools
import inspect
import pickle
import typing

import pytest

from switchgear import SwitchEngaged
from switchgear.testing import Console

CONSOLE = Console()
GEAR = CONSOLE.client()
guard = GEAR.guard(feature="chat")


@pytest.fixture(autouse=True)
def _released():
    yield
    CONSOLE.release("feature:chat")


@guard
def plain(question: str, *, loud: bool = False) -> str:
    """Answers."""
    return question


@guard
async def coroutine(question: str) -> str:
    """Answers later."""
    await asyncio.sleep(0)
    return question


@guard
def generator(question: str) -> typing.Iterator[str]:
    """Answers bit by bit."""
    yield from question


@guard
async def async_generator(question: str) -> typing.AsyncIterator[str]:
    """Answers bit by bit, later."""
    for letter in question:
        yield letter


def test_functions_stay_of_their_kind():
    assert inspect.isfunction(plain)
    assert not inspect.iscoroutinefunction(plain)
    assert inspect.iscoroutinefunction(coroutine)
    assert inspect.isgeneratorfunction(generator)
    assert inspect.isasyncgenfunction(async_generator)


@pytest.mark.parametrize("function", [plain, coroutine, generator, async_generator])
def test_functions_keep_their_looks(function):
    original = function.__wrapped__

    assert inspect.signature(function) == inspect.signature(original)
    assert typing.get_type_hints(function) == typing.get_type_hints(original)
    assert function.__doc__.startswith("Answers")
    assert function.__qualname__ == original.__name__
    assert pickle.loads(pickle.dumps(function)) is function


def test_coroutine_is_asked_for_when_it_is_awaited():
    async def story():
        assert await coroutine("hello") == "hello"
        begun = coroutine("hello")
        CONSOLE.engage("feature:chat")
        with pytest.raises(SwitchEngaged):
            await begun

    asyncio.run(story())


def test_coroutine_that_is_cancelled_is_cancelled():
    finished = []

    @guard
    async def forever():
        try:
            await asyncio.sleep(60)
        finally:
            finished.append(True)

    async def story():
        task = asyncio.create_task(forever())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(story())
    assert finished == [True]


def test_generator_is_asked_for_at_its_first_step_and_not_again():
    letters = generator("abc")
    CONSOLE.engage("feature:chat")
    with pytest.raises(SwitchEngaged):
        next(letters)

    CONSOLE.release("feature:chat")
    letters = generator("abc")
    assert next(letters) == "a"
    CONSOLE.engage("feature:chat")
    assert list(letters) == ["b", "c"]


def test_generator_takes_what_is_sent_thrown_and_returned():
    @guard
    def talk():
        heard = []
        try:
            while True:
                try:
                    heard.append((yield len(heard)))
                except KeyError:
                    heard.append("thrown")
                if len(heard) == 3:
                    return heard
        finally:
            heard.append("left")

    talking = talk()
    assert next(talking) == 0
    assert talking.send("a") == 1
    assert talking.throw(KeyError) == 2
    with pytest.raises(StopIteration) as stopped:
        talking.send("b")
    assert stopped.value.value == ["a", "thrown", "b", "left"]

    talking = talk()
    next(talking)
    talking.close()
    with pytest.raises(StopIteration):
        next(talking)


def test_async_generator_is_asked_for_at_its_first_step_and_not_again():
    async def story():
        letters = async_generator("abc")
        CONSOLE.engage("feature:chat")
        with pytest.raises(SwitchEngaged):
            await anext(letters)
        CONSOLE.release("feature:chat")

        letters = async_generator("abc")
        assert await anext(letters) == "a"
        CONSOLE.engage("feature:chat")
        assert [letter async for letter in letters] == ["b", "c"]

    asyncio.run(story())


def test_async_generator_takes_what_is_sent_thrown_and_closed():
    told = []

    @guard
    async def talk():
        try:
            while True:
                try:
                    told.append((yield len(told)))
                except KeyError:
                    told.append("thrown")
                await asyncio.sleep(0)
        finally:
            await asyncio.sleep(0)
            told.append("left")

    async def story():
        talking = talk()
        assert await anext(talking) == 0
        assert await talking.asend("a") == 1
        assert await talking.athrow(KeyError()) == 2
        await talking.aclose()
        assert told == ["a", "thrown", "left"]
        with pytest.raises(StopAsyncIteration):
            await anext(talking)

    asyncio.run(story())


def test_async_generator_raises_what_its_body_raises():
    @guard
    async def fails():
        yield 1
        raise ZeroDivisionError

    async def story():
        numbers = fails()
        assert await anext(numbers) == 1
        with pytest.raises(ZeroDivisionError):
            await anext(numbers)
        with pytest.raises(StopAsyncIteration):
            await anext(numbers)

    asyncio.run(story())


def test_async_generator_that_is_cancelled_in_a_step_is_left():
    left = []

    @guard
    async def waits():
        try:
            yield 1
            await asyncio.sleep(60)
            yield 2
        finally:
            left.append(True)

    async def story():
        numbers = waits()
        await anext(numbers)
        task = asyncio.create_task(anext(numbers))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(story())
    assert left == [True]


def test_methods_are_bound_and_their_arguments_are_seen():
    class Service:
        feature = "chat"

        @GEAR.guard(feature=lambda self: self.feature)
        def method(self, question):
            return question

        @GEAR.guard(feature=lambda self: self.feature)
        async def later(self, question):
            return question

        @classmethod
        @GEAR.guard(feature=lambda cls: cls.feature)
        def inside(cls, question):
            return cls.__name__

        @GEAR.guard(feature=lambda cls: cls.feature)
        @classmethod
        def outside(cls, question):
            return cls.__name__

        @GEAR.guard(feature="chat")
        @staticmethod
        def static(question):
            return question

    service = Service()
    calls = [service.method, service.inside, service.outside, service.static, Service.outside]
    said = [call("hello") for call in calls]
    assert said == ["hello", "Service", "Service", "hello", "Service"]
    assert asyncio.run(service.later("hello")) == "hello"

    CONSOLE.engage("feature:chat")
    for call in calls:
        with pytest.raises(SwitchEngaged):
            call("hello")
    with pytest.raises(SwitchEngaged):
        asyncio.run(service.later("hello"))


def test_partial_functions_and_objects_to_call_can_be_guarded():
    class Answers:
        def __call__(self, question):
            return question

    assert guard(Answers())("hello") == "hello"
    assert guard(functools.partial(lambda one, two: one + two, "a"))("b") == "ab"
    later = guard(functools.partial(coroutine.__wrapped__, "hello"))
    assert inspect.iscoroutinefunction(later)
    assert asyncio.run(later()) == "hello"


def test_async_context_manager_asks_on_entering():
    async def story():
        async with guard as decision:
            assert decision.allowed
        CONSOLE.engage("feature:chat")
        with pytest.raises(SwitchEngaged):
            async with guard:
                raise AssertionError("this must not run")

    asyncio.run(story())


@pytest.mark.parametrize("nothing_to_guard", [dict, "chat", property(lambda self: 1), None])
def test_what_is_no_function_is_refused(nothing_to_guard):
    with pytest.raises(TypeError, match="only functions"):
        guard(nothing_to_guard)


def test_name_of_a_guard_without_its_arguments_is_refused():
    with pytest.raises(TypeError):

        @GEAR.guard
        def answer():
            return "hello"
