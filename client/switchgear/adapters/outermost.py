"""Retries of other libraries, kept as ours are: counted, and none within another."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from switchgear import journal
from switchgear.patterns import attempts, limits
from switchgear.patterns.attempts import Attempts
from switchgear.patterns.counters import Counters
from switchgear.patterns.rounds import is_final
from switchgear.wrapping import by_kind, is_coroutine_function

F = TypeVar("F", bound=Callable[..., Any])


class Outermost:
    """A decorator of another library that tries again, for calls of the dependency `name`.

    Within another retry it is left out: the outermost alone tries again. What is inside knows that
    something tries already, over the wire too, and has one idempotency key. Each retry is counted
    when it begins.
    """

    def __init__(
        self, decorate: Callable[[Any], Any], name: str, counters: Counters | None = None
    ) -> None:
        self.name = name
        self.counters = counters
        self._decorate = decorate

    def __call__(self, function: F) -> F:
        """`function`, tried again. A generator can't be: :class:`TypeError`."""
        return by_kind(
            function, plain=self._plain, coroutine=self._coroutine, stream=None, what="a retry"
        )

    def _plain(self, function: Callable[..., Any]) -> Callable[..., Any]:
        tried = self._decorate(self._counting(function))

        def call(*args: Any, **kwargs: Any) -> Any:
            if attempts.active() is not None:
                return function(*args, **kwargs)
            marker = Tried(self)
            attempts.begin(marker)
            try:
                return tried(*args, **kwargs)
            finally:
                attempts.end(marker)

        return call

    def _coroutine(self, function: Callable[..., Any]) -> Callable[..., Any]:
        tried = self._decorate(self._counting(function))

        async def call(*args: Any, **kwargs: Any) -> Any:
            if attempts.active() is not None:
                return await function(*args, **kwargs)
            marker = Tried(self)
            attempts.begin(marker)
            try:
                return await tried(*args, **kwargs)
            finally:
                attempts.end(marker)

        return call

    def _counting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Each call of it is one attempt."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            _begin()
            try:
                return function(*args, **kwargs)
            except Exception as error:
                _failed(error)
                raise

        @functools.wraps(function)
        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            _begin()
            try:
                return await function(*args, **kwargs)
            except Exception as error:
                _failed(error)
                raise

        return coroutine if is_coroutine_function(function) else call


class Tried(Attempts):
    """One call that another library tries again."""

    def __init__(self, owner: Outermost) -> None:
        super().__init__(0, owner)
        self.begun = 0
        self.failure = "result"
        """The class of the last error, or that a result was not good enough."""


def may_try_again(error: BaseException) -> bool:
    """Whether trying again is ours to decide, and not useless: not what was refused, was cancelled,
    or must be stopped by a person; not while something around tries again."""
    if is_final(error):
        return False
    active = attempts.active()
    return active is None or isinstance(active, Tried)


def count_retry(
    name: str, counters: Counters | None, attempt: int, error: str, seconds: float | None = None
) -> None:
    """The attempt `attempt`, from 1, has failed, and there is another one."""
    if counters is not None:
        counters.retry()
    limits.count_retry()
    waits = {} if seconds is None else {"wait_seconds": round(seconds, 3)}
    journal.note("call_retried", name, attempt=attempt, error=error, **waits)


def is_counted() -> bool:
    """Whether an :class:`Outermost` sees to what is being tried here."""
    return isinstance(attempts.active(), Tried)


def _begin() -> None:
    marker = attempts.active()
    if not isinstance(marker, Tried) or not isinstance(marker.owner, Outermost):
        return
    if marker.begun:
        count_retry(marker.owner.name, marker.owner.counters, marker.begun, marker.failure)
    marker.number = marker.begun
    marker.asked = None
    marker.failure = "result"
    marker.begun += 1


def _failed(error: Exception) -> None:
    marker = attempts.active()
    if isinstance(marker, Tried):
        marker.failure = type(error).__name__
