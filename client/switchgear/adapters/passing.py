"""Lets exceptions through patterns that are no failures: by them a framework says what to do."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, TypeVar

from switchgear.wrapping import wrapped

F = TypeVar("F", bound=Callable[..., Any])


class _Passing(asyncio.CancelledError):
    """What was raised, in the guise of a cancellation: no pattern counts that, tries it again, or
    answers for it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


class _Hide(AbstractContextManager[None]):
    def __init__(self, kinds: tuple[type[BaseException], ...]) -> None:
        self._kinds = kinds

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, self._kinds):
            raise _Passing(error)


class _Show(AbstractContextManager[None]):
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, _Passing):
            raise error.error from error.error.__cause__


def passing(pattern: Callable[[F], F], function: F, kinds: tuple[type[BaseException], ...]) -> F:
    """`function` within `pattern`, to which exceptions of these kinds are as if it was cancelled.
    Whoever calls it gets them as they are. Raises what the pattern does, for what it can't take."""
    hide, show = _Hide(kinds), _Show()
    hidden = wrapped(function, lambda args, kwargs: hide)
    return wrapped(pattern(hidden), lambda args, kwargs: show)
