"""A bulkhead: limits concurrent calls, so that one slow dependency can't take all threads."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from types import CoroutineType
from typing import Any, TypeVar

from switchgear import cancellation
from switchgear.argument_finders import KeyFinder, make_finder
from switchgear.decorators import F, refuse_coroutine, wrap_by_kind, wrap_generator
from switchgear.evaluation.keys import Key, require_key_text
from switchgear.patterns import forks
from switchgear.patterns.admission import AdmissionQueue, validate_priority
from switchgear.patterns.entered_contexts import pop_entry, push_entry
from switchgear.patterns.limit_controller import LimitController, MeasuredPermit
from switchgear.patterns.parameters import BulkheadParameters, Tier, resolve_bulkhead_parameters
from switchgear.patterns.permits import Occupancy, PermitPool

T = TypeVar("T")
HeldPermit = PermitPool | MeasuredPermit
"""A permit in use; its `release` returns the permit to the bulkhead."""


class Bulkhead:
    """A bulkhead: a limit of concurrent calls, with a queue.

    At most `limit` calls run at once, up to `queue` more wait, and the rest are rejected with
    :class:`BulkheadFull`. Without parameters all calls pass and are counted.

        bulkhead = Bulkhead("core->oracle", BulkheadParameters(limit=20, queue=40, queue_seconds=2))

        with bulkhead.of(key="kim", priority=10):
            ask()

    Threads and tasks wait in one queue: higher `priority` first, then in order of arrival. At most
    `per_key_limit` calls of one `key`, such as a user, run at once; a call that waits for this
    limit does not hold up others. Keys are compared by their text; a key that is not a str, an int,
    a UUID or an enum member raises :class:`TypeError`. A priority of None is 0; any other value
    that is not a whole number is 0 too, which is logged once. `key` and `priority` may be functions
    of the call's arguments: they receive the arguments that their own parameters name, or all of
    them.

    A bulkhead is a decorator and a context manager (`with` or `async with`); a block has a key and
    a priority only by `with bulkhead.of(…):`. A bulkhead nested in itself takes two permits.

    A waiting call is refused as soon as a switch around it is engaged, or as the dependency's
    breaker (listed in `sources`) is forced open. A plain function does not wait inside an event
    loop, since it would block the tasks that return permits. `clock` is monotonic; the clock of a
    :class:`switchgear.testing.FakeClock` ends waits when it is advanced.
    """

    def __init__(
        self,
        name: str = "unnamed",
        parameters: BulkheadParameters | Tier | None = None,
        *,
        key: Callable[..., Key | None] | None = None,
        priority: int | Callable[..., int | None] | None = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not isinstance(name, str):
            raise TypeError(
                f"name must be text, not {type(name).__name__:.100}; as a decorator it needs a"
                " limit: @Bulkhead(name, BulkheadParameters(limit=...))"
            )
        if key is not None and not callable(key):
            raise TypeError(f"key must be a function of a call's arguments, not {key!r:.50}")
        self.name = name
        self.sources: cancellation.Sources = ()
        """Sources that may refuse queued calls, besides the switches around each call."""
        self._queue = AdmissionQueue(name, clock)
        self._key = key
        self._priority = validate_priority(priority)
        self.parameters = resolve_bulkhead_parameters(parameters)
        self._reset_state()
        forks.register(self)

    def __call__(self, function: F) -> F:
        """Return `function`, limited by the bulkhead. A generator holds a permit until its end."""
        return self.wrap(function, self._key, self._priority)

    def wrap(self, function: F, key: object, priority: object) -> F:
        """Return `function`, limited by the bulkhead with this `key` and `priority` for its calls.

        Each of the two is a value, or a function of the call's arguments.
        """
        find_key = None if key is None else _find_argument(key, function)
        find_priority = _find_argument(priority, function)

        def permit(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> "BulkheadPermit":
            key = None if find_key is None else find_key(args, kwargs)
            return BulkheadPermit(self, key, find_priority(args, kwargs), is_timed=False)

        return wrap_by_kind(
            function,
            plain=partial(self._plain, find_key, find_priority),
            coroutine=partial(self._coroutine, find_key, find_priority),
            generator=partial(wrap_generator, permit),
            what="a bulkhead",
        )

    def of(self, key: Key | None = None, priority: int | None = 0) -> "BulkheadPermit":
        """Return a context manager that holds a permit for `key` with this priority."""
        return BulkheadPermit(self, key, priority)

    def configure(self, parameters: BulkheadParameters | Tier | None) -> None:
        """Apply `parameters` from now on. Running calls keep their permits."""
        self.parameters = resolve_bulkhead_parameters(parameters)
        self._apply(self.parameters)

    def look(self) -> Occupancy:
        return self._permits.occupancy()

    def acquire(self, key: Key | None = None, priority: int | None = 0) -> HeldPermit:
        """Return a permit for one call, waiting in the queue if needed. The caller releases it."""
        permits = self._permits
        if key is not None:
            key = require_key_text(key)
        if not permits.acquire(key):
            self._queue.wait(permits, key, priority, self.parameters, self.sources)
        return permits if self._controller is None else self._measure(permits, key)

    async def acquire_async(self, key: Key | None = None, priority: int | None = 0) -> HeldPermit:
        """Like :meth:`acquire`, for coroutines."""
        permits = self._permits
        if key is not None:
            key = require_key_text(key)
        if not permits.acquire(key):
            await self._queue.async_wait(permits, key, priority, self.parameters, self.sources)
        return permits if self._controller is None else self._measure(permits, key)

    def after_fork(self) -> None:
        """Start with new permits, all free, in a forked child; running calls keep the old ones."""
        self._permits.after_fork()
        self._reset_state()

    def __enter__(self) -> None:
        self._push(self.acquire(None, self._fixed_priority()))

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        entry = pop_entry(self)
        if entry is not None:  # In a forked child the permit may belong to the parent's set.
            entry[0].release(None, error)
        elif self._permits.in_flight > 0:  # The block was entered in another context.
            self._permits.release()

    async def __aenter__(self) -> None:
        self._push(await self.acquire_async(None, self._fixed_priority()))

    async def __aexit__(self, *raised: Any) -> None:
        self.__exit__(*raised)

    def _push(self, permit: HeldPermit) -> None:
        try:
            push_entry(self, permit, None)
        except BaseException:
            permit.release()
            raise

    def _fixed_priority(self) -> Any:
        return 0 if callable(self._priority) else self._priority

    def _reset_state(self) -> None:
        self._permits = PermitPool(None)
        self._apply(self.parameters)

    def _apply(self, parameters: BulkheadParameters | None) -> None:
        permits, controller = self._permits, None
        if parameters is not None and parameters.mode == "adaptive":
            controller = LimitController(permits, parameters.limit_range)
        permits.configure(parameters, controller)
        self._controller = controller

    def _measure(self, permits: PermitPool, key: str | None) -> HeldPermit:
        controller = self._controller
        try:
            return permits if controller is None else controller.begin_call(permits)
        except BaseException:
            permits.release(key)
            raise

    def _plain(
        self, find_key: KeyFinder | None, find_priority: KeyFinder, function: Callable[..., Any]
    ) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            key = None if find_key is None else require_key_text(find_key(args, kwargs))
            if self._controller is not None:
                with BulkheadPermit(self, key, find_priority(args, kwargs)) as permit:
                    value = function(*args, **kwargs)
                    if type(value) is CoroutineType:
                        refuse_coroutine(value)
                    return permit.record_outcome(value)
            permits = self._permits
            if not permits.acquire(key):
                priority = find_priority(args, kwargs)
                self._queue.wait(permits, key, priority, self.parameters, self.sources)
            try:
                value = function(*args, **kwargs)
                return refuse_coroutine(value) if type(value) is CoroutineType else value
            finally:
                if key is None:
                    permits.put_back(None)
                else:
                    permits.put_back_key(key)
                if permits.busy:
                    permits.settle()

        return call

    def _coroutine(
        self, find_key: KeyFinder | None, find_priority: KeyFinder, function: Callable[..., Any]
    ) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            key = None if find_key is None else require_key_text(find_key(args, kwargs))
            if self._controller is not None:
                async with BulkheadPermit(self, key, find_priority(args, kwargs)) as permit:
                    return permit.record_outcome(await function(*args, **kwargs))
            permits = self._permits
            if not permits.acquire(key):
                priority = find_priority(args, kwargs)
                await self._queue.async_wait(permits, key, priority, self.parameters, self.sources)
            try:
                return await function(*args, **kwargs)
            finally:
                if key is None:
                    permits.put_back(None)
                else:
                    permits.put_back_key(key)
                if permits.busy:
                    permits.settle()

        return call


class BulkheadPermit:
    """A `with` or `async with` block that holds one permit for a key and a priority.

    If it is not `is_timed`, such as a stream, an adaptive limit ignores its duration.
    """

    __slots__ = ("_bulkhead", "_held", "_is_timed", "_key", "_priority")

    def __init__(
        self, bulkhead: Bulkhead, key: Key | None, priority: int | None, *, is_timed: bool = True
    ) -> None:
        self._bulkhead = bulkhead
        self._key = None if key is None else require_key_text(key)
        self._priority, self._is_timed = priority, is_timed
        self._held: tuple[HeldPermit, Any] | None = None
        """A linked list of permits, innermost first: no signal handler interrupts an assignment."""

    def record_outcome(self, outcome: T) -> T:
        """Record the call's result or error for an adaptive limit, and return it."""
        if self._held is not None and isinstance(self._held[0], MeasuredPermit):
            self._held[0].record(outcome)
        return outcome

    def __enter__(self) -> "BulkheadPermit":
        self._held = self._bulkhead.acquire(self._key, self._priority), self._held
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if self._held is not None:
            if not self._is_timed and isinstance(self._held[0], MeasuredPermit):
                self._held[0].is_timed = False
            permit, self._held = self._held
            permit.release(self._key, error)

    async def __aenter__(self) -> "BulkheadPermit":
        self._held = await self._bulkhead.acquire_async(self._key, self._priority), self._held
        return self

    async def __aexit__(self, *raised: Any) -> None:
        self.__exit__(*raised)


def _find_argument(given: Any, function: Callable[..., Any]) -> KeyFinder:
    return make_finder(given, function) if callable(given) else lambda args, kwargs: given
