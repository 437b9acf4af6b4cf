"""Functions and coroutine functions with a breaker around their calls: the hot path."""

from collections.abc import Callable
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from switchgear.wrapping import refuse_coroutine

if TYPE_CHECKING:
    from switchgear.patterns.breaker import Breaker
    from switchgear.patterns.generation import Permit


def around_function(breaker: "Breaker", function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` with `breaker` around its calls."""
    is_judged = breaker._verdicts.judge_results

    def call(*args: Any, **kwargs: Any) -> Any:
        calm = breaker._calm
        permit, began = (calm, None) if calm is not None else breaker._start()
        try:
            value = function(*args, **kwargs)
            if type(value) is CoroutineType:
                refuse_coroutine(value)
        except BaseException as error:
            breaker.settle(permit, error, breaker._seconds(began))
            raise
        if calm is None or is_judged:
            return _returned(breaker, permit, value, breaker._seconds(began))
        breaker._did_well(calm)
        return value

    return call


def around_coroutine(breaker: "Breaker", function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the coroutine function `function` with `breaker` around its calls.

    They are timed by a :class:`CallTimer`, as a task begun inside may wait for them in a queue.
    """
    is_judged = breaker._verdicts.judge_results

    async def call(*args: Any, **kwargs: Any) -> Any:
        calm = breaker._calm
        permit, timer = (calm, None) if calm is not None else breaker._begin()
        try:
            value = await function(*args, **kwargs)
        except BaseException as error:
            breaker._end(permit, timer, error)
            raise
        if calm is None or is_judged:
            seconds = None if timer is None else timer.stop()
            return _returned(breaker, permit, value, seconds)
        breaker._did_well(calm)
        return value

    return call


def _returned(breaker: "Breaker", permit: "Permit", value: Any, seconds: float | None) -> Any:
    verdicts = breaker._verdicts
    if verdicts.judge_results and verdicts.is_bad_result(value):
        breaker.fail(permit, None, seconds)
    else:
        breaker.succeed(permit, seconds)
    return value
