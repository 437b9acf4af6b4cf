"""Functions and coroutine functions with a breaker around their calls: the hot path."""

from collections.abc import Callable
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from switchgear.patterns.queue_time import queued
from switchgear.wrapping import refuse_coroutine

if TYPE_CHECKING:
    from switchgear.patterns.breaker import Breaker
    from switchgear.patterns.terms import Permit


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
            return _returned(breaker, permit, value, began)
        breaker._did_well(calm)
        return value

    return call


def around_coroutine(breaker: "Breaker", function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the coroutine function `function` with `breaker` around its calls."""
    is_judged = breaker._verdicts.judge_results

    async def call(*args: Any, **kwargs: Any) -> Any:
        calm = breaker._calm
        permit, began = (calm, None) if calm is not None else breaker._start()
        try:
            value = await function(*args, **kwargs)
        except BaseException as error:
            breaker.settle(permit, error, breaker._seconds(began))
            raise
        if calm is None or is_judged:
            return _returned(breaker, permit, value, began)
        breaker._did_well(calm)
        return value

    return call


def _returned(breaker: "Breaker", permit: "Permit", value: Any, began: float | None) -> Any:
    seconds = None if began is None else breaker._clock() - queued() - began
    verdicts = breaker._verdicts
    if verdicts.judge_results and verdicts.is_bad_result(value):
        breaker.fail(permit, None, seconds)
    else:
        breaker.succeed(permit, seconds)
    return value
