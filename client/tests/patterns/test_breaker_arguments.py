"""Wrong arguments of a breaker raise by name, and `@Breaker` needs no parentheses."""

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from switchgear.patterns import forks
from switchgear.patterns.breaker import Breaker
from switchgear.patterns.parameters import BreakerParameters, RetryParameters
from switchgear.refusals import CircuitOpen


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": 3}, "name must be a string, not 3"),
        ({"parameters": 3}, "parameters must be BreakerParameters, not 3"),
        ({"parameters": {"failure_count": 3}}, "parameters must be BreakerParameters, not {"),
        ({"parameters": RetryParameters()}, "parameters must be BreakerParameters"),
        ({"ignore": KeyError}, "ignore must be a tuple of exception classes"),
        ({"ignore": (KeyError, "x")}, "ignore must be a tuple of exception classes"),
        ({"ignore": (int,)}, "ignore must be a tuple of exception classes"),
        ({"is_failure": (KeyError,)}, "is_failure must be a function"),
        ({"is_failure": KeyError}, "is_failure must be a function"),
        ({"is_failed_result": 500}, "is_failed_result must be a function, not 500"),
        ({"counters": {}}, "counters must be Counters"),
        ({"clock": 1.0}, "clock must be a function"),
        ({"clock": None}, "clock must be a function"),
        ({"rng": 0.5}, "rng must be a function"),
        ({"rng": None}, "rng must be a function"),
    ],
)
def test_argument_of_a_wrong_type_is_refused_by_name_before_anything_is_registered(
    arguments: dict[str, Any], message: str
) -> None:
    before = len(forks._all)

    with pytest.raises(TypeError) as caught:
        Breaker(**arguments)

    assert str(caught.value).startswith(message)
    assert len(forks._all) == before


@pytest.mark.parametrize("wrong", [3, None, RetryParameters()])
def test_configure_refuses_a_wrong_type_without_effect(wrong: object) -> None:
    breaker = Breaker("d")

    with pytest.raises(TypeError, match="parameters must be BreakerParameters, not"):
        breaker.configure(wrong)  # type: ignore[arg-type]

    assert breaker.parameters == BreakerParameters()
    assert breaker(lambda: 5)() == 5


def test_decorator_without_parentheses_is_a_breaker_with_the_defaults() -> None:
    @Breaker  # type: ignore[arg-type]
    def ask(question: str) -> str:
        """Ask."""
        raise ConnectionError(question)

    for _ in range(BreakerParameters().minimum_calls):
        with pytest.raises(ConnectionError):
            ask("why")

    with pytest.raises(CircuitOpen) as caught:
        ask("why")
    assert caught.value.dependency.endswith("is_a_breaker_with_the_defaults.<locals>.ask")
    assert ask.__doc__ == "Ask."
    assert list(inspect.signature(ask).parameters) == ["question"]


def test_decorator_without_parentheses_suits_coroutines_generators_and_methods() -> None:
    class Service:
        @Breaker  # type: ignore[arg-type]
        async def ask(self) -> int:
            return 1

        @Breaker  # type: ignore[arg-type]
        def stream(self) -> Iterator[int]:
            yield 2

        @Breaker  # type: ignore[arg-type]
        @staticmethod
        def static() -> int:
            return 3

    service: Any = Service()

    assert inspect.iscoroutinefunction(service.ask)
    assert inspect.isgeneratorfunction(service.stream)
    assert (asyncio.run(service.ask()), list(service.stream()), service.static()) == (1, [2], 3)


def test_class_can_not_be_decorated() -> None:
    with pytest.raises(TypeError, match="only functions and methods can be decorated"):

        @Breaker  # type: ignore[arg-type]
        class Service:
            pass


def test_function_with_further_arguments_is_refused() -> None:
    with pytest.raises(TypeError, match="name must be a string"):
        Breaker(lambda: 5, BreakerParameters())  # type: ignore[arg-type]


def test_breaker_of_a_subclass_decorates_without_parentheses_too() -> None:
    made = []

    class Own(Breaker):
        def __call__(self, function: Any) -> Any:
            made.append(self.name)
            return super().__call__(function)

    assert Own(lambda: 5)() == 5  # type: ignore[arg-type, operator]
    assert len(made) == 1
