"""A wrapper by which patterns ignore the exceptions that frameworks use as control flow."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from switchgear.decorators import wrap

F = TypeVar("F", bound=Callable[..., Any])


class _PassedThrough(asyncio.CancelledError):
    """A cancellation that wraps an exception, so that patterns neither count nor retry it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


class _Hide(AbstractContextManager[None]):
    def __init__(self, kinds: tuple[type[BaseException], ...]) -> None:
        self._kinds = kinds

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, self._kinds):
            raise _PassedThrough(error)


class _Show(AbstractContextManager[None]):
    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, _PassedThrough):
            raise error.error from error.error.__cause__


def pass_through(
    pattern: Callable[[F], F], function: F, kinds: tuple[type[BaseException], ...]
) -> F:
    """Return `function` decorated with `pattern`, from which exceptions of `kinds` are hidden.

    The pattern sees them as cancellations; the caller of the returned function gets them unchanged.
    """
    hide, show = _Hide(kinds), _Show()
    hidden = wrap(function, lambda args, kwargs: hide)
    return wrap(pattern(hidden), lambda args, kwargs: show)
