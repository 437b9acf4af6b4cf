"""Wrappers of functions, coroutine functions and blocks with a breaker: the hot path."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Self

from switchgear.decorators import refuse_coroutine
from switchgear.patterns.entered_contexts import pop_entry, push_entry

if TYPE_CHECKING:
    from switchgear.patterns.breaker import Breaker
    from switchgear.patterns.generation import CallPermit
    from switchgear.patterns.queue_time import CallTimer


def around_function(breaker: "Breaker", function: Callable[..., Any]) -> Callable[..., Any]:
    classifies = breaker._classifier.classifies_results

    def call(*args: Any, **kwargs: Any) -> Any:
        fast_permit = breaker._fast_permit
        permit, began = (fast_permit, None) if fast_permit is not None else breaker._start()
        try:
            value = function(*args, **kwargs)
            if type(value) is CoroutineType:
                refuse_coroutine(value)
        except BaseException as error:
            breaker.settle(permit, error, breaker._elapsed_seconds(began))
            raise
        if fast_permit is None or classifies:
            return _record_result(breaker, permit, value, breaker._elapsed_seconds(began))
        breaker._record_success(fast_permit)
        return value

    return call


def around_coroutine(breaker: "Breaker", function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the coroutine function `function` with `breaker` around its calls.

    Calls are timed by a :class:`CallTimer`, which also excludes the queue time of tasks that the
    call starts.
    """
    classifies = breaker._classifier.classifies_results

    async def call(*args: Any, **kwargs: Any) -> Any:
        fast_permit = breaker._fast_permit
        permit, timer = (fast_permit, None) if fast_permit is not None else breaker._begin()
        try:
            value = await function(*args, **kwargs)
        except BaseException as error:
            breaker._end(permit, timer, error)
            raise
        if fast_permit is None or classifies:
            seconds = None if timer is None else timer.stop()
            return _record_result(breaker, permit, value, seconds)
        breaker._record_success(fast_permit)
        return value

    return call


def _record_result(
    breaker: "Breaker", permit: "CallPermit", value: Any, seconds: float | None
) -> Any:
    classifier = breaker._classifier
    if classifier.classifies_results and classifier.is_failed_result(value):
        breaker.fail(permit, None, seconds)
    else:
        breaker.succeed(permit, seconds)
    return value


class BreakerBlock(ABC):
    """Base class with the `with` and `async with` blocks of a breaker."""

    @abstractmethod
    def _begin(self) -> "tuple[CallPermit, CallTimer | None]": ...

    @abstractmethod
    def _end(
        self, permit: "CallPermit", timer: "CallTimer | None", error: BaseException | None
    ) -> None: ...

    @abstractmethod
    def _release_lost(self) -> None:
        """Release a probe whose block was left in another context than it was entered in."""

    def __enter__(self) -> Self:
        permit, timer = self._begin()
        permit.is_block = True
        push_entry(self, permit, timer)
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        entry = pop_entry(self)
        if entry is not None:
            self._end(*entry, error)
        else:
            self._release_lost()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *raised: Any) -> None:
        self.__exit__(*raised)
