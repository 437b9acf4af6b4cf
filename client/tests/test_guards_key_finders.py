"""Functions that find keys in a call, and objects whose calls are coroutines."""

import asyncio
import enum
import functools
import inspect

import pytest

from switchgear import SwitchEngaged
from switchgear.testing import Console


@pytest.fixture
def console() -> Console:
    return Console()


class Trials(enum.Enum):
    BLUE = "blue"


def test_class_that_lists_keys_is_no_finder_and_is_refused(console):
    with pytest.raises(TypeError, match="experiments can't be the class Trials"):
        console.client().guard(experiments=Trials)


def test_class_that_makes_a_key_of_an_argument_is_a_finder(console):
    @console.client().guard(segment=str)
    def answer(number):
        return number

    console.engage("segment:7")
    assert answer(8) == 8
    with pytest.raises(SwitchEngaged):
        answer(7)


def test_object_that_would_find_a_key_by_a_coroutine_is_refused(console):
    class Department:
        async def __call__(self, user):
            return "finance"

    with pytest.raises(TypeError, match="coroutine"):
        console.client().guard(segment=Department())


def test_positional_argument_is_not_found_among_others_of_its_name(console):
    @console.client().guard(segment=lambda user="retail": user)
    def answer(user="finance", /, **details):
        return user, details

    assert answer("retail", user="finance") == ("retail", {"user": "finance"})
    console.engage("segment:finance")
    assert answer("retail", user="finance") == ("retail", {"user": "finance"})
    with pytest.raises(SwitchEngaged):
        answer(user="retail")


@pytest.mark.parametrize("made", [lambda one: one, functools.partial])
def test_object_whose_call_is_a_coroutine_is_asked_for_when_it_is_awaited(console, made):
    class Answers:
        async def __call__(self, question):
            return question

    guarded = console.client().guard(feature="chat")(made(Answers()))
    assert inspect.iscoroutinefunction(guarded)
    begun = guarded("hello")
    console.engage("feature:chat")

    with pytest.raises(SwitchEngaged):
        asyncio.run(begun)
    console.release("feature:chat")
    assert asyncio.run(guarded("hello")) == "hello"


def test_object_whose_call_is_a_generator_is_asked_for_at_its_first_step(console):
    class Answers:
        def __call__(self, question):
            yield question

    guarded = console.client().guard(feature="chat")(Answers())
    assert inspect.isgeneratorfunction(guarded)
    begun = guarded("hello")
    console.engage("feature:chat")

    with pytest.raises(SwitchEngaged):
        next(begun)
