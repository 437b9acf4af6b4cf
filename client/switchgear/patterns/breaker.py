"""A circuit breaker for functions and blocks."""

from collections.abc import Callable
from functools import partial
from types import CoroutineType
from typing import Any, Self

from switchgear.decorators import F, refuse_coroutine, wrap_by_kind, wrap_generator
from switchgear.patterns.argument_checks import BareDecorator
from switchgear.patterns.call_recorder import CallRecorder
from switchgear.patterns.entered_contexts import CallScope, pop_entry, push_entry
from switchgear.patterns.generation import CallPermit
from switchgear.patterns.queue_time import CallTimer, queued_seconds


class Breaker(CallRecorder, BareDecorator):
    """A circuit breaker: passes, rejects or probes calls depending on the failure rate.

    While closed, calls pass; at the failure threshold the breaker opens and rejects calls with
    :class:`CircuitOpen`; after `open_seconds` it is half-open and lets a few probes decide.

        breaker = Breaker("core->oracle")

        @breaker
        def ask(question: str) -> str: ...

    Use it as a decorator for functions, coroutine functions, methods and generators, or as a
    context manager with `with` and `async with`. `@Breaker` without parentheses has all defaults
    and the function's qualified name. One breaker serves any number of threads and tasks, and is
    reentrant. Decorate a generator function instead of using a block in it: a block that is left in
    a context other than the one it was entered in is not counted. The call of a generator lasts
    from its first step to its end.

    A failure is an :class:`Exception` for which `is_failure` returns True. By default that is every
    exception but HTTP client errors, a status of 400 to 499 other than 408 and 429: the callee has
    answered, so they count as successes. A result of a decorated function for which
    `is_failed_result` returns True is a failure, too. If one of the two functions raises, the error
    is logged and the call counts as a failure. Cancelled calls, refused calls, errors in `ignore`,
    and timeouts mostly spent in a queue of this process are not counted. An outcome counts only in
    the state and the window in which its call began.

    `counters` may be shared with other patterns of the same dependency. `clock` is monotonic, in
    seconds. `rng` returns numbers from 0 to 1 for the jitter. No lock is held while a call, a
    listener or a hook runs. Raise :class:`TypeError`, naming the argument, for an argument of the
    wrong type.
    """

    def __call__(self, function: F) -> F:
        return wrap_by_kind(
            function,
            plain=self._plain,
            coroutine=self._coroutine,
            generator=partial(
                wrap_generator, lambda args, kwargs: CallScope(self._begin, self._end)
            ),
            what="a breaker",
        )

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
            # The block was entered in another context: release its probe.
            self._run_locked(self._machine.release_lost_probe)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *raised: Any) -> None:
        self.__exit__(*raised)

    def _plain(self, function: Callable[..., Any]) -> Callable[..., Any]:
        classifies = self._classifier.result_predicate is not None

        def call(*args: Any, **kwargs: Any) -> Any:
            fast_permit = self._fast_permit
            permit, began = (fast_permit, None) if fast_permit is not None else self._start()
            try:
                value = function(*args, **kwargs)
                if type(value) is CoroutineType:
                    refuse_coroutine(value)
            except BaseException as error:
                self.settle(permit, error, self._elapsed_seconds(began))
                raise
            if fast_permit is None or classifies:
                return self._record_result(permit, value, self._elapsed_seconds(began))
            self._record_success(fast_permit)
            return value

        return call

    def _coroutine(self, function: Callable[..., Any]) -> Callable[..., Any]:
        classifies = self._classifier.result_predicate is not None

        async def call(*args: Any, **kwargs: Any) -> Any:
            fast_permit = self._fast_permit
            permit, timer = (fast_permit, None) if fast_permit is not None else self._begin()
            try:
                value = await function(*args, **kwargs)
            except BaseException as error:
                self._end(permit, timer, error)
                raise
            if fast_permit is None or classifies:
                seconds = None if timer is None else timer.stop()
                return self._record_result(permit, value, seconds)
            self._record_success(fast_permit)
            return value

        return call

    def _record_result(self, permit: CallPermit, value: Any, seconds: float | None) -> Any:
        if self._classifier.is_failed_result(value):
            self.fail(permit, None, seconds)
        else:
            self.succeed(permit, seconds)
        return value

    def _begin(self) -> tuple[CallPermit, CallTimer | None]:
        """Admit a call that may end in another context, and return its permit and timer.

        The timer is None if durations don't matter.
        """
        permit = self.admit()
        return permit, None if self._slow_seconds is None else CallTimer(self._clock)

    def _end(
        self, permit: CallPermit, timer: CallTimer | None, error: BaseException | None
    ) -> None:
        self.settle(permit, error, None if timer is None else timer.stop())

    def _start(self) -> tuple[CallPermit, float | None]:
        """Admit a call; return its permit, and its start time by a clock without time in queues.

        The start time is None if durations don't matter.
        """
        permit = self._shared_permit or self.admit()
        return permit, None if self._slow_seconds is None else self._clock() - queued_seconds()

    def _elapsed_seconds(self, began: float | None) -> float | None:
        """Return the seconds since `began`, without time in queues; None if `began` is None."""
        return None if began is None else self._clock() - queued_seconds() - began
