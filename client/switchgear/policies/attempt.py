"""One attempt of `for attempt in policy:`."""

from contextlib import AsyncExitStack, ExitStack
from typing import Any, Self

from switchgear.patterns.retry import NO_RESULT, Attempt
from switchgear.policies.entered_blocks import (
    async_attempt_managers,
    attempt_managers,
    enter_all,
    enter_all_async,
)
from switchgear.policies.layers import AdmissionArguments, Layers


class PolicyAttempt:
    """One attempt of a policy, entered once with `with` or `async with`.

    `number` counts from 1. Set `result` to let `retry_result` evaluate it.
    """

    result: Any = NO_RESULT

    def __init__(
        self,
        attempt: Attempt,
        layers: Layers,
        admission: AdmissionArguments,
        outer: ExitStack,
    ) -> None:
        self._attempt = attempt
        self._layers, self._admission, self._outer = layers, admission, outer
        self._entered: ExitStack | AsyncExitStack = ExitStack()
        self.number = attempt.number
        self.truncates = attempt.truncates

    def __enter__(self) -> Self:
        try:
            self._entered = enter_all(attempt_managers(self._layers, self._admission))
        except BaseException as error:
            self._end_refused(error)
            raise
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> bool:
        assert isinstance(self._entered, ExitStack)  # noqa: S101 - for the type.
        try:
            self._entered.__exit__(kind, error, traceback)
        except BaseException as other:  # For instance the timeout that caused a cancellation.
            if self._will_retry(other):
                return True
            raise
        return self._will_retry(error)

    async def __aenter__(self) -> Self:
        try:
            self._entered = await enter_all_async(
                async_attempt_managers(self._layers, self._admission)
            )
        except BaseException as error:
            self._end_refused(error)
            raise
        return self

    async def __aexit__(self, kind: Any, error: BaseException | None, traceback: Any) -> bool:
        assert isinstance(self._entered, AsyncExitStack)  # noqa: S101 - for the type.
        try:
            await self._entered.__aexit__(kind, error, traceback)
        except BaseException as other:
            if self._will_retry(other):
                return True
            raise
        return self._will_retry(error)

    def _will_retry(self, error: BaseException | None) -> bool:
        """End the attempt; return True if the call is retried.

        After the last attempt, leave the outer managers at once: an asynchronous iterator that is
        left by `return` is closed later, in another context.
        """
        self._attempt.result = self.result
        try:
            return self._attempt.__exit__(type(error) if error else None, error, None)
        finally:
            if self._attempt.wait_seconds is None:
                self._outer.close()

    def _end_refused(self, error: BaseException) -> None:
        self._attempt.__exit__(type(error), error, None)
        self._outer.close()
