"""The common base of timeouts and deadlines, which are decorators and context managers."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import CoroutineType
from typing import Any, ClassVar

from switchgear.decorators import F, is_async_generator_function, refuse_coroutine, wrap_by_kind
from switchgear.failures.error_labels import is_timeout
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
from switchgear.patterns.timeout_errors import DeadlineExceeded


class TimeLimited(ABC):
    """A time limit around functions and blocks. If `cuts` is True, it cancels coroutines."""

    _what: ClassVar[str]
    _converts_timeouts: ClassVar[bool] = False

    def __init__(
        self, seconds: float | None, *, cuts: bool = True, clock: Clock = time.monotonic
    ) -> None:
        self._clock = clock
        self._cuts = cuts
        self.configure(seconds)

    def configure(self, seconds: float | None) -> None:
        """Limit calls to `seconds` from now on. Raise the errors of `validate_seconds`."""
        self.seconds = validate_seconds(seconds)

    def __call__(self, function: F) -> F:
        """Return `function` with this time limit.

        A generator is limited from its first step to its end, including the time of its consumer. A
        step is cut off at the limit; a step that would begin after it raises `NoTimeLeft`.
        """
        return wrap_by_kind(
            function,
            plain=self._plain,
            coroutine=self._coroutine,
            generator=self._generator,
            what=self._what,
        )

    @abstractmethod
    def _make_error(self, limit: TimeLimit) -> TimeoutError:
        """Return the error to raise for a call that was cut off at `limit`."""

    def _leave(self, limit: TimeLimit, error: BaseException | None) -> None:
        end(limit)
        if absorb_cancellation(limit, error):
            raise self._make_error(limit) from error
        if error is not None:
            self._raise_if_late(limit, error)

    def _raise_if_late(self, limit: TimeLimit, error: BaseException) -> None:
        """Raise :class:`DeadlineExceeded` if `error` is a timeout and the limit has passed."""
        if not self._converts_timeouts or isinstance(error, DeadlineExceeded):
            return
        if limit.until <= limit.clock() and is_timeout(error):
            raise limit.source.make_error() from error

    def _plain(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            limit = begin(self, self.seconds, self._clock)
            try:
                value = function(*args, **kwargs)
                return refuse_coroutine(value) if type(value) is CoroutineType else value
            except Exception as error:
                if limit is not None:
                    self._raise_if_late(limit, error)
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
                self._leave(limit, error)
                raise
            self._leave(limit, None)
            return result

        return call

    def _generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        is_async = is_async_generator_function(function)
        cuts = is_async and self._cuts
        return wrap_steps(
            function,
            lambda _args, _kwargs: StreamTimeLimit(
                self, self.seconds, self._clock, self._leave, cuts=cuts
            ),
            is_async=is_async,
        )

    def __enter__(self) -> None:
        begin(self, self.seconds, self._clock)

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        limit = find_limit(self)
        if limit is not None:
            self._leave(limit, error)

    async def __aenter__(self) -> None:
        limit = begin(self, self.seconds, self._clock)
        if limit is not None and self._cuts:
            arm_cancellation(limit)

    async def __aexit__(self, *raised: Any) -> None:
        self.__exit__(*raised)
