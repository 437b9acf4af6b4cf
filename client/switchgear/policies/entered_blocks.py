"""Context managers of a policy's blocks and attempts, which may be left in another context.

Web frameworks enter and leave dependencies that are generators in different contexts.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

from switchgear.cancellation import SourceScope, TaskCancellation, leave
from switchgear.guards import Guard
from switchgear.patterns import entered_contexts
from switchgear.patterns.deadline import Deadline
from switchgear.patterns.entered_contexts import CallScope
from switchgear.patterns.retry import NO_RESULT, Attempt
from switchgear.patterns.time_limits import TimeLimit, end, find_limit
from switchgear.patterns.timeout import Timeout
from switchgear.policies.layers import OUTER_ONLY, AdmissionArguments, Layers

Stack = TypeVar("Stack", ExitStack, AsyncExitStack)


class EnteredBlocks:
    """The `with` blocks of one policy that are running, in all threads and tasks. Thread-safe."""

    def __init__(self) -> None:
        self._entered: dict[ExitStack | AsyncExitStack, None] = {}

    def enter(self, steps: Iterable[Any]) -> None:
        """Enter the context managers `steps` of one block; if one fails, leave those before it."""
        self._push(enter_all(steps))

    def leave(self, error: BaseException | None, traceback: TracebackType | None) -> None:
        """Leave the block that was entered last in this context.

        If there is none, leave a block that was entered in another context.
        """
        stack, error = self._pop(ExitStack, error)
        if stack is not None:
            stack.__exit__(None if error is None else type(error), error, traceback)

    async def aenter(self, steps: Iterable[Any]) -> None:
        """Like :meth:`enter`, for `async with`."""
        self._push(await enter_all_async(steps))

    async def aleave(self, error: BaseException | None, traceback: TracebackType | None) -> None:
        stack, error = self._pop(AsyncExitStack, error)
        if stack is not None:
            await stack.__aexit__(None if error is None else type(error), error, traceback)

    def _push(self, stack: ExitStack | AsyncExitStack) -> None:
        self._entered[stack] = None
        entered_contexts.push_entry(self, stack, None)

    def _pop(
        self, kind: type[Stack], error: BaseException | None
    ) -> tuple[Stack | None, BaseException | None]:
        """Return the block to leave, and the error to leave it with; None for no block.

        If this context has entered none, it is a block of another context, perhaps the wrong one of
        several. That block is left with an error that does not count as an outcome.
        """
        while (found := entered_contexts.pop_entry(self)) is not None:
            if isinstance(found[0], kind) and self._claim(found[0]):
                return found[0], error
        for stack in list(self._entered):
            if isinstance(stack, kind) and self._claim(stack):
                return stack, GeneratorExit()
        return None, error

    def _claim(self, stack: ExitStack | AsyncExitStack) -> bool:
        return self._entered.pop(stack, False) is None


class LimitedBlock:
    """A `with` block with a timeout or deadline, which may be left in another context."""

    def __init__(self, limiting: Timeout | Deadline) -> None:
        self._limiting = limiting
        self._limit: TimeLimit | None = None

    def __enter__(self) -> None:
        before = find_limit(self._limiting)
        self._limiting.__enter__()
        self._remember_limit(before)

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        limit = self._limit
        if limit is None:
            return
        if find_limit(self._limiting) is limit:
            self._limiting.__exit__(kind, error, traceback)
        else:
            end(limit)

    async def __aenter__(self) -> None:
        before = find_limit(self._limiting)
        await self._limiting.__aenter__()
        self._remember_limit(before)

    async def __aexit__(self, *raised: Any) -> None:
        self.__exit__(*raised)

    def _remember_limit(self, before: TimeLimit | None) -> None:
        limit = find_limit(self._limiting)
        self._limit = None if limit is before else limit


@dataclass(eq=False)
class GuardedBlock:
    """A `with` block that a guard refuses while a switch is engaged.

    It may be left in a context other than the one it was entered in.
    """

    _guard: Guard
    _scope: SourceScope | None = None

    def __enter__(self) -> None:
        self._scope = self._guard._enter(cancels=False)[1]

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if self._scope is not None:
            leave(self._scope, error)

    async def __aenter__(self) -> None:
        self._scope = self._guard._enter(cancels=self._guard.on_engage == "cancel")[1]

    async def __aexit__(self, *raised: Any) -> None:
        self.__exit__(*raised)


@dataclass(eq=False)
class CancellingBlock:
    """A block whose task is cancelled when a switch of its guard is engaged.

    It has no effect for a guard without `on_engage="cancel"`.
    """

    _guard: Guard
    _cancellation: TaskCancellation | None = None

    async def __aenter__(self) -> None:
        scope = self._guard._innermost_scope()
        if self._guard.on_engage == "cancel" and scope is not None:
            self._cancellation = TaskCancellation(scope.source)

    async def __aexit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if self._cancellation is not None:
            self._cancellation.end(error)


def block_managers(layers: Layers, admission: AdmissionArguments) -> Iterator[Any]:
    yield from _outer_managers(layers)
    yield from attempt_managers(layers, admission)


def attempt_managers(layers: Layers, admission: AdmissionArguments) -> Iterator[Any]:
    """Yield the context managers of one attempt, outermost first: breaker, bulkhead, timeout."""
    breaker = layers.breaker
    yield CallScope(breaker._begin, breaker._end)
    if layers.bulkhead is not None:
        yield admission.block_manager(layers.bulkhead)
    yield LimitedBlock(layers.timeout or OUTER_ONLY)


def async_attempt_managers(layers: Layers, admission: AdmissionArguments) -> Iterator[Any]:
    """Like :func:`attempt_managers`, for a coroutine, which the guard may cancel."""
    if layers.guard is not None:
        yield CancellingBlock(layers.guard)
    yield from attempt_managers(layers, admission)


def enter_outer_managers(layers: Layers) -> ExitStack:
    """Enter the guard and the deadline around all attempts of a call, and return their stack."""
    return enter_all(_outer_managers(layers))


def enter_all(steps: Iterable[Any]) -> ExitStack:
    """Enter these context managers, and return their stack; if one fails, leave those before it."""
    with ExitStack() as stack:
        for each in steps:
            stack.enter_context(each)
        return stack.pop_all()


async def enter_all_async(steps: Iterable[Any]) -> AsyncExitStack:
    """Like :func:`enter_all`, for coroutines and asynchronous context managers."""
    async with AsyncExitStack() as stack:
        for each in steps:
            if isinstance(each, AbstractAsyncContextManager):
                await stack.enter_async_context(each)
            else:
                stack.enter_context(each)
        return stack.pop_all()


def _outer_managers(layers: Layers) -> Iterator[Any]:
    if layers.guard is not None:
        yield GuardedBlock(layers.guard)
    if layers.deadline is not None:
        yield LimitedBlock(layers.deadline)


@dataclass(eq=False, repr=False)
class PolicyAttempt:
    """One attempt in a loop `for attempt in policy:`, entered once, by `with` or `async with`.

    `number` counts from 1. Set `result` to let `retry_result` evaluate it.
    """

    _attempt: Attempt
    _layers: Layers
    _admission: AdmissionArguments
    _outer: ExitStack
    result: Any = NO_RESULT

    def __post_init__(self) -> None:
        self._entered: ExitStack | AsyncExitStack = ExitStack()
        self.number = self._attempt.number
        self.truncates = self._attempt.truncates

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
        """End the attempt; return True if another attempt follows.

        After the last attempt, leave the guard and the deadline at once: an asynchronous iterator
        that is left by `return` is closed later, in another context.
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
