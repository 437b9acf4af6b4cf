"""How long one attempt may take."""

import time
from collections.abc import Callable
from types import CoroutineType, TracebackType
from typing import Any, TypeVar

from switchgear.decorators import is_async_generator_function, refuse_coroutine, wrap_by_kind
from switchgear.generator_steps import wrap_steps
from switchgear.patterns.time_limits import (
    Clock,
    StreamTimeLimit,
    TimeLimit,
    absorb_cancellation,
    arm_cancellation,
    begin,
    end,
    end_here,
    find_limit,
    validate_seconds,
)

F = TypeVar("F", bound=Callable[..., Any])


class CallTimeout(TimeoutError):
    """One call took longer than `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no answer within {seconds:.3g} s")
        self.seconds = seconds

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.seconds,)


class Timeout:
    """One call may take `seconds`, and no longer than an outer limit leaves; None: only that.

    A coroutine is cut off: :class:`CallTimeout`, or `DeadlineExceeded` if an outer deadline was the
    shorter one. A plain function can't be interrupted: it is not begun when no time is left, what
    it calls may ask `deadline.left()`, and what comes late is given as it is. Innermost of a stack,
    so that what is around it sees an error of the call, and no cancellation.

    Decorate a generator, and never leave `with timeout:` open over a `yield` in it: what is around
    the `yield` is the consumer's, who would be limited by it, and cancelled.
    """

    def __init__(self, seconds: float | None, *, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self.configure(seconds)

    def configure(self, seconds: float | None) -> None:
        """For calls from now on. Raises :class:`ValueError` or :class:`TypeError`."""
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
            what="a timeout",
        )

    def _plain(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            limit = begin(self, self.seconds, self._clock)
            try:
                value = function(*args, **kwargs)
                return refuse_coroutine(value) if type(value) is CoroutineType else value
            finally:
                if limit is not None:
                    end_here(limit)

        return call

    def _coroutine(self, function: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            limit = begin(self, self.seconds, self._clock)
            if limit is None:
                return await function(*args, **kwargs)
            arm_cancellation(limit)
            try:
                result = await function(*args, **kwargs)
            except BaseException as error:
                self._leave(limit, error)
                raise
            self._leave(limit, None)
            return result

        return call

    def _generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        is_async = is_async_generator_function(function)
        return wrap_steps(
            function,
            lambda args, kwargs: StreamTimeLimit(
                self, self.seconds, self._clock, self._leave, cuts=is_async
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
            self._leave(limit, error)

    async def __aenter__(self) -> None:
        limit = begin(self, self.seconds, self._clock)
        if limit is not None:
            arm_cancellation(limit)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)

    def _leave(self, limit: TimeLimit, error: BaseException | None) -> None:
        end(limit)
        if not absorb_cancellation(limit, error):
            return
        if limit.inherited_from is None:
            raise CallTimeout(limit.seconds) from error
        raise limit.source.exceeded() from error
