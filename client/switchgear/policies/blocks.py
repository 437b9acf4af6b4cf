"""What a policy enters for a block, or for one try, and leaves again wherever that ends: who uses a
generator may begin and end it in different contexts, as web frameworks do with dependencies."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack
from types import TracebackType
from typing import Any, TypeVar

from switchgear.cancellation import Scope, TaskCancellation, leave
from switchgear.guards import Guard
from switchgear.patterns import entered_contexts
from switchgear.patterns.deadline import Deadline
from switchgear.patterns.entered_contexts import CallScope
from switchgear.patterns.time_limits import TimeLimit, end, find_limit
from switchgear.patterns.timeout import Timeout
from switchgear.policies.layers import OUTER_ONLY, Layers, Sought

Stack = TypeVar("Stack", ExitStack, AsyncExitStack)


class Blocks:
    """Those of one policy that somebody is in. Safe to use from any thread, and any task."""

    def __init__(self) -> None:
        self._entered: dict[ExitStack | AsyncExitStack, None] = {}

    def enter(self, steps: Iterable[Any]) -> None:
        """Into all of them, or none."""
        self._keep(entered_now(steps))

    def leave(self, error: BaseException | None, traceback: TracebackType | None) -> None:
        """Out of what was entered last here, or for want of that, of one that was elsewhere."""
        stack, is_own = self._taken(ExitStack)
        if stack is not None:
            stack.__exit__(*_raised(error, is_own), traceback)

    async def aenter(self, steps: Iterable[Any]) -> None:
        """As :meth:`enter`, for `async with`."""
        self._keep(await entered_async(steps))

    async def aleave(self, error: BaseException | None, traceback: TracebackType | None) -> None:
        stack, is_own = self._taken(AsyncExitStack)
        if stack is not None:
            await stack.__aexit__(*_raised(error, is_own), traceback)

    def _keep(self, stack: ExitStack | AsyncExitStack) -> None:
        self._entered[stack] = None
        entered_contexts.push_entry(self, stack, None)

    def _taken(self, kind: type[Stack]) -> tuple[Stack | None, bool]:
        """A block to leave, and whether it is surely the one that ends. If it may be another's, as
        many are left in the end as were entered: that one then takes what is over."""
        while (found := entered_contexts.pop_entry(self)) is not None:
            if isinstance(found[0], kind) and self._takes(found[0]):
                return found[0], True
        for stack in list(self._entered):
            if isinstance(stack, kind) and self._takes(stack):
                return stack, False
        return None, False

    def _takes(self, stack: ExitStack | AsyncExitStack) -> bool:
        return self._entered.pop(stack, False) is None


class Within:
    """A limit around one block. Left in another context than entered, it only ends."""

    def __init__(self, limiting: Timeout | Deadline) -> None:
        self._limiting = limiting
        self._limit: TimeLimit | None = None

    def __enter__(self) -> None:
        before = find_limit(self._limiting)
        self._limiting.__enter__()
        self._began(before)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
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
        self._began(before)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)

    def _began(self, before: TimeLimit | None) -> None:
        limit = find_limit(self._limiting)
        self._limit = None if limit is before else limit


class GuardedBlock:
    """A block of a guard that may be left in another context than it was entered in."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._scope: Scope | None = None

    def __enter__(self) -> None:
        self._scope = self._guard._entered(cancels=False)[1]

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._scope is not None:
            leave(self._scope)
            if self._scope.cancellation is not None:
                self._scope.cancellation.end(error)

    async def __aenter__(self) -> None:
        self._scope = self._guard._entered(cancels=self._guard.on_engage == "cancel")[1]

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)


class CancellingBlock:
    """Cancels the task that is in this block, once the guard that was entered around it refuses its
    call; only if the guard says `on_engage="cancel"`."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._cancellation: TaskCancellation | None = None

    async def __aenter__(self) -> None:
        scope = self._guard._innermost()
        if self._guard.on_engage == "cancel" and scope is not None:
            self._cancellation = TaskCancellation(scope.source)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._cancellation is not None:
            self._cancellation.end(error)


def around_block(layers: Layers, sought: Sought) -> Iterator[Any]:
    """What a block is to enter, outside in."""
    yield from _around_tries(layers)
    yield from around_try(layers, sought)


def around_try(layers: Layers, sought: Sought) -> Iterator[Any]:
    """What one try is to enter."""
    breaker = layers.breaker
    yield CallScope(breaker._begin, breaker._end)
    if layers.bulkhead is not None:
        yield sought.place(layers.bulkhead)
    yield Within(layers.timeout or OUTER_ONLY)


def around_async_try(layers: Layers, sought: Sought) -> Iterator[Any]:
    """The same in a coroutine, which the guard around all tries may cancel."""
    if layers.guard is not None:
        yield CancellingBlock(layers.guard)
    yield from around_try(layers, sought)


def around_tries(layers: Layers) -> ExitStack:
    """What all tries are in, entered already."""
    return entered_now(_around_tries(layers))


def entered_now(steps: Iterable[Any]) -> ExitStack:
    """All of them; if one can't be, those before it are left."""
    with ExitStack() as stack:
        for each in steps:
            stack.enter_context(each)
        return stack.pop_all()


async def entered_async(steps: Iterable[Any]) -> AsyncExitStack:
    """The same, in an event loop."""
    async with AsyncExitStack() as stack:
        for each in steps:
            if isinstance(each, AbstractAsyncContextManager):
                await stack.enter_async_context(each)
            else:
                stack.enter_context(each)
        return stack.pop_all()


def _around_tries(layers: Layers) -> Iterator[Any]:
    if layers.guard is not None:
        yield GuardedBlock(layers.guard)
    if layers.deadline is not None:
        yield Within(layers.deadline)


def _raised(
    error: BaseException | None, is_own: bool
) -> tuple[type[BaseException] | None, BaseException | None]:
    """What a block is left with. One that may be another's says nothing of how the call went."""
    if not is_own:
        error = GeneratorExit()
    return (None if error is None else type(error)), error
