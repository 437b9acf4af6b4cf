"""Tries a call again, seldom enough to help.

Only the outermost retry tries again, see `attempts`; all of one dependency share a budget; every
retry is counted; and an error that is given up says how often it was tried.
"""

import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from inspect import isawaitable
from types import CoroutineType, TracebackType
from typing import Any, TypeVar

from switchgear import cancellation
from switchgear.patterns import attempts
from switchgear.patterns.counters import Counters
from switchgear.patterns.limits import Clock
from switchgear.patterns.parameters import RetryParameters
from switchgear.patterns.retry_budget import RetryBudget
from switchgear.patterns.rounds import Kinds, RetryState, Round
from switchgear.wrapping import by_kind, refuse_coroutine

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
F = TypeVar("F", bound=Callable[..., Any])

_NOTHING = object()


class Attempt:
    """One attempt of `for attempt in retry:`, entered with `with`. `number` is from 1; `truncates`
    that what was too long is to be truncated for this one. Set `result` to let `retry_result` look
    at it."""

    result: Any = _NOTHING

    def __init__(self, round_: Round | None) -> None:
        self._round = round_
        self.number = 1 if round_ is None else round_.tried
        self.truncates = round_ is not None and round_.truncates
        self.wait_seconds: float | None = None
        """Before the next one; None if this was the last."""

    def __enter__(self) -> "Attempt":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if self._round is None:
            return False
        if error is not None:
            self.wait_seconds = self._round.after_error(error)
        elif self.result is not _NOTHING:
            self.wait_seconds = self._round.after_result(self.result)
        if self.wait_seconds is None:
            # Not when the iterator ends: an asynchronous one that is left with `return` does later.
            self._round.leave()
        return error is not None and self.wait_seconds is not None

    async def __aenter__(self) -> "Attempt":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        return self.__exit__(kind, error, traceback)


class Retry:
    """Tries again what may be: as a decorator, or as `for attempt in retry:` with `with attempt:`
    inside, `async for` in coroutines.

    Without `retry_on` and `never`, the words of the parameters decide; `never` wins. A refusal, a
    cancellation and a catastrophic failure are never tried again. `truncate` makes the arguments
    of what was too long shorter, once. `budget` and `counters` are those of the dependency; without
    a budget, one of its own by the parameters. The last error is raised as it is, with a note. No
    wait begins that is longer than what a deadline leaves. `sleep` is called instead of waiting,
    and awaited in coroutines if it gives something to await.
    """

    def __init__(
        self,
        name: str = "unnamed",
        parameters: RetryParameters | None = None,
        *,
        retry_on: Kinds = None,
        never: Kinds = None,
        retry_result: Callable[[Any], bool] | None = None,
        truncate: Callable[[tuple[Any, ...], dict[str, Any]], Arguments] | None = None,
        budget: RetryBudget | None = None,
        counters: Counters | None = None,
        on_retry: Callable[[RetryState], None] | None = None,
        clock: Clock = time.monotonic,
        draw: Callable[[], float] = random.random,
        sleep: Callable[[float], Any] | None = None,
    ) -> None:
        self.name = name
        self.sources: cancellation.Sources = ()
        self.parameters = parameters or RetryParameters()
        self.retry_on, self.never = retry_on, never
        self.retry_result = retry_result
        self.truncate = truncate
        self.counters = counters
        self.on_retry = on_retry
        self.clock, self.draw = clock, draw
        self.exhausted_at: float | None = None
        """When it was last said that the budget is."""
        self._sleep = sleep
        self._owns_budget = budget is None
        self.budget: RetryBudget | None = budget or RetryBudget(
            self.parameters.budget_rate, self.parameters.budget_per_second, clock=clock
        )

    def configure(self, parameters: RetryParameters) -> None:
        """For attempts from now on; also the budget, if it is its own."""
        self.parameters = parameters
        if self._owns_budget and self.budget is not None:
            self.budget.configure(parameters.budget_rate, parameters.budget_per_second)

    def begin(self) -> Round | None:
        """What decides for one call, for adapters; None if it is made once only, because something
        around it tries again."""
        if self.parameters.attempts == 1 or attempts.active() is not None:
            return None
        return Round(self)

    def wait(self, seconds: float, cause: BaseException | None = None) -> None:
        """Block until the next attempt. Raise the refusal, from `cause`, as soon as a switch or a
        forced breaker refuses it."""
        if self._sleep is None:
            cancellation.sleep(seconds, self.sources, cause)
        else:
            self._sleep(seconds)
            cancellation.check(self.sources, cause)

    async def await_(self, seconds: float, cause: BaseException | None = None) -> None:
        """Wait until the next attempt in a coroutine, likewise."""
        if self._sleep is None:
            await cancellation.async_sleep(seconds, self.sources, cause)
            return
        waiting = self._sleep(seconds)
        if isawaitable(waiting):
            await waiting
        cancellation.check(self.sources, cause)

    def __call__(self, function: F) -> F:
        """`function`, tried again. A generator can't be: :class:`TypeError`."""
        return by_kind(
            function, plain=self._plain, coroutine=self._coroutine, stream=None, what="a retry"
        )

    def _plain(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            round_ = self.begin()
            if round_ is None:
                return function(*args, **kwargs)
            attempts.begin(round_)
            try:
                while True:
                    try:
                        result = function(*args, **kwargs)
                        if type(result) is CoroutineType:
                            refuse_coroutine(result)
                    except BaseException as error:
                        wait = round_.after_error(error)
                        if wait is None:
                            raise
                    else:
                        if self.retry_result is None:
                            return result
                        wait = round_.after_result(result)
                        if wait is None:
                            return result
                    if round_.truncates:
                        args, kwargs = self._truncated(args, kwargs)
                    self.wait(wait)
            finally:
                attempts.end(round_)

        return call

    def _coroutine(self, function: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            round_ = self.begin()
            if round_ is None:
                return await function(*args, **kwargs)
            attempts.begin(round_)
            try:
                while True:
                    try:
                        result = await function(*args, **kwargs)
                    except BaseException as error:
                        wait = round_.after_error(error)
                        if wait is None:
                            raise
                    else:
                        if self.retry_result is None:
                            return result
                        wait = round_.after_result(result)
                        if wait is None:
                            return result
                    if round_.truncates:
                        args, kwargs = self._truncated(args, kwargs)
                    await self.await_(wait)
            finally:
                attempts.end(round_)

        return call

    def _truncated(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        return (args, kwargs) if self.truncate is None else self.truncate(args, kwargs)

    def __iter__(self) -> Iterator[Attempt]:
        round_ = self.begin()
        if round_ is None:
            yield Attempt(None)
            return
        round_.enter()
        try:
            while True:
                attempt = Attempt(round_)
                yield attempt
                if attempt.wait_seconds is None:
                    return
                self.wait(attempt.wait_seconds)
        finally:
            round_.leave()

    async def __aiter__(self) -> AsyncIterator[Attempt]:
        round_ = self.begin()
        if round_ is None:
            yield Attempt(None)
            return
        round_.enter()
        try:
            while True:
                attempt = Attempt(round_)
                yield attempt
                if attempt.wait_seconds is None:
                    return
                await self.await_(attempt.wait_seconds)
        finally:
            round_.leave()
