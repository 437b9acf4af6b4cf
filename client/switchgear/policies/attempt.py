"""One attempt of `for attempt in policy:`."""

from contextlib import AsyncExitStack, ExitStack
from types import TracebackType
from typing import Any, Self

from switchgear.patterns.retry import Attempt
from switchgear.policies.blocks import around_async_try, around_try, entered_async, entered_now
from switchgear.policies.layers import Layers, Sought


class PolicyAttempt:
    """One attempt of a policy, entered once with `with` or `async with`. `number` counts from 1;
    set `result` to let `retry_result` judge it."""

    def __init__(
        self, attempt: Attempt | None, layers: Layers, sought: Sought, outer: ExitStack
    ) -> None:
        self._attempt = attempt
        self._layers, self._sought, self._outer = layers, sought, outer
        self._entered: ExitStack | AsyncExitStack = ExitStack()
        self.number = 1 if attempt is None else attempt.number
        self.truncates = attempt is not None and attempt.truncates

    @property
    def result(self) -> Any:
        return None if self._attempt is None else self._attempt.result

    @result.setter
    def result(self, value: Any) -> None:
        if self._attempt is not None:
            self._attempt.result = value

    def __enter__(self) -> Self:
        try:
            self._entered = entered_now(around_try(self._layers, self._sought))
        except BaseException as error:
            self._refused(error)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        assert isinstance(self._entered, ExitStack)  # noqa: S101 - for the type.
        try:
            self._entered.__exit__(kind, error, traceback)
        except BaseException as other:  # For instance the timeout that caused a cancellation.
            if self._is_settled(other):
                return True
            raise
        return self._is_settled(error)

    async def __aenter__(self) -> Self:
        try:
            self._entered = await entered_async(around_async_try(self._layers, self._sought))
        except BaseException as error:
            self._refused(error)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        assert isinstance(self._entered, AsyncExitStack)  # noqa: S101 - for the type.
        try:
            await self._entered.__aexit__(kind, error, traceback)
        except BaseException as other:
            if self._is_settled(other):
                return True
            raise
        return self._is_settled(error)

    def _is_settled(self, error: BaseException | None) -> bool:
        """Return True if the call is retried. If not, leave everything here: an asynchronous
        iterator that is left by `return` ends later, in another context."""
        attempt = self._attempt
        if attempt is None:
            self._outer.close()
            return False
        try:
            is_caught = attempt.__exit__(type(error) if error else None, error, None)
        finally:
            if attempt.wait_seconds is None:
                self._outer.close()
        return is_caught

    def _refused(self, error: BaseException) -> None:
        """End a call that was refused before it began: it is not retried."""
        if self._attempt is not None:
            self._attempt.__exit__(type(error), error, None)
        self._outer.close()
