"""The arguments of a retry are checked when it is created."""

import asyncio
import inspect

import pytest

from switchgear.patterns.parameters import RetryParameters
from switchgear.patterns.retry import Retry


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ({"name": 3}, "name"),
        ({"parameters": 3}, "parameters"),
        ({"parameters": {"attempts": 3}}, "parameters"),
        ({"retry_on": "timeout"}, "retry_on"),
        ({"retry_on": ConnectionError}, "retry_on"),
        ({"retry_on": [ConnectionError]}, "retry_on"),
        ({"never": (404,)}, "never"),
        ({"retry_result": True}, "retry_result"),
        ({"truncate": 100}, "truncate"),
        ({"budget": 0.2}, "budget"),
        ({"counters": {}}, "counters"),
        ({"on_retry": "print"}, "on_retry"),
        ({"rng": 0.5}, "rng"),
        ({"rng": None}, "rng"),
        ({"clock": None}, "clock"),
        ({"sleep": 0}, "sleep"),
    ],
)
def test_an_argument_of_a_wrong_type_is_refused_by_name(given, argument):
    with pytest.raises(TypeError, match=argument):
        Retry(**given)


def test_parameters_in_the_place_of_attempts_are_refused_by_name():
    with pytest.raises(TypeError, match="parameters must be RetryParameters, not 3"):
        Retry("x", 3)


@pytest.mark.parametrize("given", [503, "timeout", [503], (5.5,)])
@pytest.mark.parametrize("argument", ["retry_on", "never"])
def test_words_that_are_no_tuple_are_refused_by_name(argument, given):
    with pytest.raises(TypeError, match=argument):
        RetryParameters(**{argument: given})


def test_without_parentheses_it_is_named_after_the_function():
    calls = []

    @Retry
    def ask(question: str) -> str:
        """Ask the model."""
        calls.append(question)
        if len(calls) < 2:
            raise ConnectionError("away")
        return "fine"

    assert ask("why?") == "fine"
    assert calls == ["why?"] * 2
    assert (ask.__name__, ask.__doc__) == ("ask", "Ask the model.")


def test_without_parentheses_a_coroutine_function_stays_one():
    @Retry
    async def ask() -> str:
        return "fine"

    assert inspect.iscoroutinefunction(ask)
    assert asyncio.run(ask()) == "fine"


def test_without_parentheses_a_static_method_stays_one():
    class Service:
        @Retry
        @staticmethod
        def ask() -> str:
            return "fine"

    assert Service.ask() == Service().ask() == "fine"


def test_without_parentheses_a_class_is_refused():
    with pytest.raises(TypeError, match="only functions"):
        Retry(dict)
