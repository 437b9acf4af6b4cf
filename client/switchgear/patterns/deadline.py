"""How long all of it may take: the attempts, and the pauses between them."""

import time
from collections.abc import Callable
from types import CoroutineType, TracebackType
from typing import Any, TypeVar

from switchgear.decorators import is_async_generator_function, refuse_coroutine, wrap_by_kind
from switchgear.failures.error_labels import is_timeout
from switchgear.generator_steps import wrap_steps
from switchgear.patterns.time_limits import (
    Clock,
    DeadlineExceeded,
    NoTimeLeft,
    StreamTimeLimit,
    TimeLimit,
    absorb_cancellation,
    arm_cancellation,
    begin,
    end,
    end_here,
    find_limit,
    remaining_seconds,
    validate_seconds,
)

__all__ = ["Deadline", "DeadlineExceeded", "NoTimeLeft", "left", "remaining_seconds"]

left = remaining_seconds
"""The previous name of :func:`remaining_seconds`."""

F = TypeVar("F", bound=Callable[..., Any])


class Deadline:
    """All that is done inside is to be done within `seconds`; None for what an outer one leaves.

    In coroutines it cuts off: raises :class:`DeadlineExceeded` at that moment. Plain functions it
    can't interrupt: there it works together with what asks :func:`left`, as all patterns and the
    transports of this library do: no call or attempt begins after it, none waits longer, and what
    comes late is given as it is.

    A breaker directly inside sees a cancellation when it cuts off, which says nothing of whom it
    calls: put a `Timeout(None)` innermost, so that a call that hangs is counted. For generators
    the same holds as for a `Timeout`.

    Without `cuts` it only counts, which is cheaper: for who has a `Timeout` around everything
    inside that may wait.
    """

    def __init__(
        self, seconds: float | None, *, cuts: bool = True, clock: Clock = time.monotonic
    ) -> None:
        self._cuts = cuts
        self._clock = clock
        self.configure(seconds)

    def configure(self, seconds: float | None) -> None:
        """For what begins from now on. Raises :class:`ValueError` or :class:`TypeError`."""
        self.seconds = validate_seconds(seconds)

    def __call__(self, function: F) -> F:
        """`function`, limited. A generator is from its first step to its end, with what its
        consumer takes; the limit holds during its steps and cuts off in them alone. A step that
        would begin after it is `NoTimeLeft`."""
        return wrap_by_kind(
            function,
            plain=self._plain,
            coroutine=self._coroutine,
            generator=self._generator,
            stream=None,
            what="a deadline",
        )

    def _plain(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            limit = begin(self, self.seconds, self._clock)
            try:
                value = function(*args, **kwargs)
                return refuse_coroutine(value) if type(value) is CoroutineType else value
            except Exception as error:
                if limit is not None:
                    _raise_if_late(limit, error)
                raise
            finally:
                if limit is not None:
                    end_here(limit)

        return call

    def _coroutine(self, function: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            limit = begin(self, self.seconds, self._clock)
            if limit is None:
                return await function(*args, **kwargs)
            if self._cuts:
                arm_cancellation(limit)
            try:
                result = await function(*args, **kwargs)
            except BaseException as error:
                _leave(limit, error)
                raise
            _leave(limit, None)
            return result

        return call

    def _generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        is_async = is_async_generator_function(function)
        cuts = is_async and self._cuts
        return wrap_steps(
            function,
            lambda args, kwargs: StreamTimeLimit(
                self, self.seconds, self._clock, _leave, cuts=cuts
            ),
            is_async=is_async,
        )

    def __enter__(self) -> None:
        begin(self, self.seconds, self._clock)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        limit = find_limit(self)
        if limit is not None:
            _leave(limit, error)

    async def __aenter__(self) -> None:
        limit = begin(self, self.seconds, self._clock)
        if limit is not None and self._cuts:
            arm_cancellation(limit)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)


def _leave(limit: TimeLimit, error: BaseException | None) -> None:
    end(limit)
    if absorb_cancellation(limit, error):
        raise limit.source.exceeded() from error
    if error is not None:
        _raise_if_late(limit, error)


def _raise_if_late(limit: TimeLimit, error: BaseException) -> None:
    """A timeout of whatever kind, when the time is over, is this one."""
    if isinstance(error, DeadlineExceeded) or limit.until > limit.clock() or not is_timeout(error):
        return
    raise limit.source.exceeded() from error
