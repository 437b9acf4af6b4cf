"""A dependency whose outcomes are scripted, and breakers that are driven by letters."""

from collections.abc import Callable
from typing import Any

from switchgear import Breaker, BreakerParameters
from switchgear.patterns.generation import State
from tests.patterns.clocks import Clock


class Callee:
    """Gives its outcomes in turn, the last one again and again; raises those that are errors."""

    def __init__(self, *outcomes: Any) -> None:
        self._outcomes = outcomes
        self.calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls.append((args, kwargs))
        outcome = self._outcomes[min(len(self.calls), len(self._outcomes)) - 1]
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    async def later(self, *args: Any, **kwargs: Any) -> Any:
        return self(*args, **kwargs)


def away() -> ConnectionError:
    """A failure that passes; a new one each time, as errors keep notes and tracebacks."""
    return ConnectionError("away")


class Ignored(Exception):
    """Not counted by a :class:`Driven` breaker."""


class Driven:
    """A breaker on a clock of its own, and calls of it as letters.

    `s` succeeds, `f` fails, `i` raises :class:`Ignored`; `S` and `F` are slow, as they take
    `SLOW_SECONDS`.
    """

    SLOW_SECONDS = 5.0

    def __init__(self, **parameters: Any) -> None:
        self.clock = Clock()
        self.breaker = Breaker(
            "callee",
            BreakerParameters(**{"open_jitter": 0, **parameters}),
            ignore=(Ignored,),
            clock=self.clock,
        )
        self.transitions: list[State] = []
        self.breaker.watch(lambda transition: self.transitions.append(transition.after))

    def call(self, outcomes: str) -> State:
        """Make these calls, and return the state after the last one. Raises `CircuitOpen`."""
        for outcome in outcomes:
            permit = self.breaker.admit()
            seconds = self.SLOW_SECONDS if outcome.isupper() else 0.0
            self.breaker.settle(permit, ERRORS[outcome.lower()](), seconds)
        return self.breaker.state

    def open(self) -> None:
        """Open it by failures, however many that takes."""
        while self.call("f") != "open":
            pass

    def half_open(self) -> None:
        """Open it and let its time pass: the next call is a probe."""
        self.open()
        until = self.breaker.look().open_until
        assert until is not None
        self.clock.now = until


ERRORS: dict[str, Callable[[], Exception | None]] = {
    "s": lambda: None,
    "f": away,
    "i": Ignored,
}
