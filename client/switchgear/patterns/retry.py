"""Retries with backoff, within a budget.

An error that an active outer retry would retry is left to the outer retry, see `retried_calls`. All
retries of one dependency share a budget, and every retry is counted. A note on the last error names
the number of attempts.
"""

import random
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import closing
from inspect import isawaitable
from types import CoroutineType
from typing import Any

from switchgear import cancellation
from switchgear.decorators import F, refuse_coroutine, wrap_by_kind
from switchgear.patterns import retried_calls
from switchgear.patterns.argument_checks import (
    BareDecorator,
    check_error_kinds,
    check_functions,
    check_type,
)
from switchgear.patterns.counters import Counters
from switchgear.patterns.parameters import RetryParameters
from switchgear.patterns.retry_budget import RetryBudget
from switchgear.patterns.retry_rules import ErrorKinds
from switchgear.patterns.retry_state import RetryCallState, RetryState
from switchgear.patterns.time_limits import Clock

Arguments = tuple[tuple[Any, ...], dict[str, Any]]

NO_RESULT = object()


class Attempt:
    """One attempt in a loop `for attempt in retry:`, entered with `with`.

    `number` counts from 1; `truncates` is True if this attempt needs truncated arguments. Set
    `result` to let `retry_result` evaluate it.
    """

    result: Any = NO_RESULT

    def __init__(self, state: RetryCallState | None) -> None:
        self._state = state
        self.number = 1 if state is None else state.attempt_number
        self.truncates = state is not None and state.truncates
        self.wait_seconds: float | None = None
        """Seconds before the next attempt; None if this was the last."""

    def __enter__(self) -> "Attempt":
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> bool:
        if self._state is None:
            return False
        if error is not None:
            self.wait_seconds = self._state.after_error(error)
        elif self.result is not NO_RESULT:
            self.wait_seconds = self._state.after_result(self.result)
        if self.wait_seconds is None:
            # Not when the iterator ends: an asynchronous one ends late if left by `return`.
            self._state.leave()
        return error is not None and self.wait_seconds is not None

    async def __aenter__(self) -> "Attempt":
        return self

    async def __aexit__(self, *raised: Any) -> bool:
        return self.__exit__(*raised)


class Retry(BareDecorator):
    """A retry of calls that failed for a temporary reason.

    Use it as a decorator, or as `for attempt in retry:` with `with attempt:` inside, `async for` in
    coroutines. `@Retry` without parentheses has all defaults and the function's name.

        @Retry("core->oracle", RetryParameters(attempts=3))
        async def ask(question: str) -> str: ...

    Without `retry_on` and `never`, the statuses and names in the parameters select the errors to
    retry; `never` wins. A group of errors is retried if each member is. Refusals, cancellations,
    catastrophic failures and errors that an outer retry would retry are never retried. `truncate`
    shortens the arguments of a call that was too long, once. If all attempts fail, the last error
    is raised, with a note.

    Waits end at the deadline. When a switch around the call is engaged, or one of the `sources` of
    refusals refuses (such as a breaker that is forced open), the wait ends and no other attempt is
    made. `sleep` is called instead of waiting; in coroutines an awaitable result is awaited. `rng`
    returns numbers from 0 to 1 for the jitter.

    `budget` and `counters` are shared by the dependency; by default the retry has its own budget,
    by the parameters. Raise :class:`TypeError` for an argument of the wrong type.
    """

    def __init__(
        self,
        name: str = "unnamed",
        parameters: RetryParameters | None = None,
        *,
        retry_on: ErrorKinds = None,
        never: ErrorKinds = None,
        retry_result: Callable[[Any], bool] | None = None,
        truncate: Callable[[tuple[Any, ...], dict[str, Any]], Arguments] | None = None,
        budget: RetryBudget | None = None,
        counters: Counters | None = None,
        on_retry: Callable[[RetryState], None] | None = None,
        clock: Clock = time.monotonic,
        rng: Callable[[], float] = random.random,
        sleep: Callable[[float], Any] | None = None,
    ) -> None:
        check_type("name", name, str)
        check_type("parameters", parameters, RetryParameters, is_optional=True)
        check_type("budget", budget, RetryBudget, is_optional=True)
        check_type("counters", counters, Counters, is_optional=True)
        check_error_kinds(retry_on=retry_on, never=never)
        check_functions(
            may_be_class=True,
            retry_result=retry_result,
            truncate=truncate,
            on_retry=on_retry,
            sleep=sleep,
        )
        check_functions(is_optional=False, clock=clock, rng=rng)
        self.name = name
        self.sources: cancellation.Sources = ()
        self.parameters = parameters or RetryParameters()
        self.retry_on, self.never = retry_on, never
        self.retry_result = retry_result
        self.truncate = truncate
        self.counters = counters
        self.on_retry = on_retry
        self.clock, self.rng = clock, rng
        self.exhausted_noted_at: float | None = None
        self._sleep = sleep
        self._owns_budget = budget is None
        self.budget: RetryBudget | None = budget or RetryBudget(
            self.parameters.budget_rate, self.parameters.budget_per_second, clock=clock
        )

    def configure(self, parameters: RetryParameters) -> None:
        """Apply `parameters` from now on, also to the budget if it belongs to this retry."""
        self.parameters = parameters
        if self._owns_budget and self.budget is not None:
            self.budget.configure(parameters.budget_rate, parameters.budget_per_second)

    def begin(self) -> RetryCallState | None:
        """Return the retry state of one call that begins, for adapters.

        Return None if the call has a single attempt: by the parameters, or because it is part of a
        call that this same retry repeats.
        """
        if self.parameters.attempts == 1:
            return None
        outer = retried_calls.find_innermost()
        if outer is not None and outer.owner is self:
            return None
        return RetryCallState(self, outer)

    def wait(self, seconds: float, cause: BaseException | None = None) -> None:
        """Block for `seconds`, the pause before the next attempt.

        If the call is refused meanwhile, for example by a switch, raise the refusal, caused by
        `cause`.
        """
        if self._sleep is None:
            cancellation.sleep(seconds, self.sources, cause)
        else:
            self._sleep(seconds)
            cancellation.check(self.sources, cause)

    async def wait_async(self, seconds: float, cause: BaseException | None = None) -> None:
        """Like :meth:`wait`, in a coroutine."""
        if self._sleep is None:
            await cancellation.async_sleep(seconds, self.sources, cause)
            return
        waiting = self._sleep(seconds)
        if isawaitable(waiting):
            await waiting
        cancellation.check(self.sources, cause)

    def __call__(self, function: F) -> F:
        """Return `function` with retries. Raise :class:`TypeError` for a generator function."""
        return wrap_by_kind(
            function, plain=self._plain, coroutine=self._coroutine, generator=None, what="a retry"
        )

    def _plain(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            state = self.begin()
            if state is None:
                return function(*args, **kwargs)
            retried_calls.enter(state)
            cause = None
            try:
                while True:
                    try:
                        result = function(*args, **kwargs)
                        if type(result) is CoroutineType:
                            refuse_coroutine(result)
                    except BaseException as error:
                        if (wait := state.after_error(error)) is None:
                            raise
                        cause = error
                    else:
                        if self.retry_result is None:
                            return result
                        if (wait := state.after_result(result)) is None:
                            return result
                    if state.truncates and self.truncate is not None:
                        args, kwargs = self.truncate(args, kwargs)
                    self.wait(wait, cause)
            finally:
                cause = None  # Breaks a reference cycle.
                retried_calls.end_here(state)

        return call

    def _coroutine(self, function: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            state = self.begin()
            if state is None:
                return await function(*args, **kwargs)
            retried_calls.enter(state)
            cause = None
            try:
                while True:
                    try:
                        result = await function(*args, **kwargs)
                    except BaseException as error:
                        if (wait := state.after_error(error)) is None:
                            raise
                        cause = error
                    else:
                        if self.retry_result is None:
                            return result
                        if (wait := state.after_result(result)) is None:
                            return result
                    if state.truncates and self.truncate is not None:
                        args, kwargs = self.truncate(args, kwargs)
                    await self.wait_async(wait, cause)
            finally:
                cause = None
                retried_calls.end(state)

        return call

    def __iter__(self) -> Iterator[Attempt]:
        with closing(self._attempts()) as attempts:
            for attempt in attempts:
                yield attempt
                if attempt.wait_seconds is not None:
                    self.wait(attempt.wait_seconds)

    async def __aiter__(self) -> AsyncIterator[Attempt]:
        with closing(self._attempts()) as attempts:
            for attempt in attempts:
                yield attempt
                if attempt.wait_seconds is not None:
                    await self.wait_async(attempt.wait_seconds)

    def _attempts(self) -> Generator[Attempt, None, None]:
        """Yield the attempts of one call; the caller waits `wait_seconds` between two of them."""
        state = self.begin()
        if state is None:
            yield Attempt(None)
            return
        state.enter()
        try:
            wait_seconds: float | None = 0.0
            while wait_seconds is not None:
                attempt = Attempt(state)
                yield attempt
                wait_seconds = attempt.wait_seconds
        finally:
            state.leave()
