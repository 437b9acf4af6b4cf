"""The bulkhead: limits concurrent calls, so that one slow dependency can't take all threads."""

import threading
import time
from collections.abc import Callable, Mapping
from types import CoroutineType, TracebackType
from typing import Any, TypeVar

from switchgear import cancellation
from switchgear.async_backend import AsyncBell
from switchgear.evaluation.keys import Key
from switchgear.finding import Finder, finder
from switchgear.journal import note
from switchgear.patterns import bulkhead_queue, call_priority, deadline, entered_contexts, forks
from switchgear.patterns.admission import Permit, Place, StreamPlace
from switchgear.patterns.call_priority import checked_key
from switchgear.patterns.limit_controller import LimitController
from switchgear.patterns.parameters import BulkheadParameters, Tier, limits_of
from switchgear.patterns.permits import Occupancy, Places
from switchgear.patterns.queue_time import Waiting
from switchgear.patterns.waiter import Waiter
from switchgear.refusals import BulkheadFull
from switchgear.wrapping import by_kind, in_event_loop, refuse_coroutine

F = TypeVar("F", bound=Callable[..., Any])


class Bulkhead:
    """A bulkhead: lets at most `limit` calls run at once, queues some more, and rejects the rest
    with :class:`BulkheadFull`. Without parameters all calls pass and are counted.

    Threads and tasks wait in one queue: higher `priority` first, then who came first. At most
    `per_key_limit` calls of one `key`, such as a user, run at once; a call that waits for this
    limit does not hold up others. Keys are compared by their text; one that is not a str, an int, a
    UUID or an enum member raises :class:`TypeError`. `key` and `priority` may be functions of the
    call's arguments, which get those arguments that their own parameters name, or all of them. If
    `priority` returns None the priority is 0; if it returns anything else that is no whole number
    it is 0 too, which is logged once.

    A waiting call is woken and refused when a switch around it is engaged, or one of `sources`
    refuses: it does not begin. A decorator, and a context manager (`with` or `async with`), which
    takes key and priority from `with bulkhead.of(key=user, priority=10):` only. Nested in itself it
    takes two permits. A plain function does not wait inside an event loop, since that would block
    the tasks that return permits. `clock` is monotonic; that of a
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
        """Sources that refuse queued calls, in addition to the switches of their context: a forced
        breaker."""
        self._clock = clock
        self._key = key
        self._priority = call_priority.checked(priority)
        self._urgency = call_priority.Urgency(name)
        self.parameters = limits_of(parameters)
        self._begin_anew()
        forks.register(self)

    def __call__(self, function: F) -> F:
        """Return `function`, limited. A generator holds its permit from its first step to its
        end."""
        find_key, find_priority = self._finders(function)

        def place(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Place:
            key = None if find_key is None else find_key(args, kwargs)
            return self.of_stream(key, find_priority(args, kwargs))

        return by_kind(
            function,
            plain=self._plain,
            coroutine=self._coroutine,
            stream=place,
            what="a bulkhead",
        )

    def of(self, key: Key | None = None, priority: int | None = 0) -> Place:
        """Return a permit for one `with` or `async with`, for `key` and with that priority."""
        return Place(self, key, priority)

    def of_stream(self, key: Key | None = None, priority: int | None = 0) -> Place:
        """Like :meth:`of`, for a stream, whose duration depends on its consumer: an adaptive limit
        ignores it."""
        return StreamPlace(self, key, priority)

    def configure(self, parameters: BulkheadParameters | Tier | None) -> None:
        """Apply `parameters` from now on. Calls that have a permit keep it."""
        self.parameters = limits_of(parameters)
        self._apply(self.parameters)

    def look(self) -> Occupancy:
        """Return the current occupancy."""
        return self._places.look()

    def take(self, key: Key | None = None, priority: int | None = 0) -> Permit:
        """Take a permit, waiting for it if need be, and return the object whose `give` returns it.
        For adapters."""
        places = self._places
        if key is not None:
            key = checked_key(key)
        if not places.take(key):
            self._wait(places, key, priority)
        return places if self._controller is None else self._measured(places, key)

    async def atake(self, key: Key | None = None, priority: int | None = 0) -> Permit:
        """Like :meth:`take`, in an event loop."""
        places = self._places
        if key is not None:
            key = checked_key(key)
        if not places.take(key):
            await self._await(places, key, priority)
        return places if self._controller is None else self._measured(places, key)

    def after_fork(self) -> None:
        """Begin with all permits in a child process. Permits taken before the fork are returned to
        the old set."""
        self._places.after_fork()
        self._begin_anew()

    def __enter__(self) -> None:
        self._entered(self.take(None, self._fixed_priority()))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._leave(error)

    async def __aenter__(self) -> None:
        self._entered(await self.atake(None, self._fixed_priority()))

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._leave(error)

    def _begin_anew(self) -> None:
        self._places = Places(None)
        self._apply(self.parameters)

    def _apply(self, parameters: BulkheadParameters | None) -> None:
        places, controller = self._places, None
        if parameters is not None and parameters.mode == "adaptive":
            controller = LimitController(places, parameters.limit_range)
        places.configure(parameters, controller)
        self._controller = controller

    def _entered(self, permit: Permit) -> None:
        try:
            entered_contexts.entered(self, permit, None)
        except BaseException:
            permit.give()
            raise

    def _leave(self, error: BaseException | None) -> None:
        found = entered_contexts.left(self)
        if found is not None:  # In a forked child the permit may belong to the parent's set.
            found[0].give(None, error)
        elif self._places.in_flight > 0:  # Left in a context other than its own.
            self._places.give()

    def _measured(self, places: Places, key: str | None) -> Permit:
        controller = self._controller
        try:
            return places if controller is None else controller.begin(places)
        except BaseException:
            places.give(key)
            raise

    def _fixed_priority(self) -> int:
        return 0 if callable(self._priority) else self._priority

    def _plain(self, function: Callable[..., Any]) -> Callable[..., Any]:
        find_key, find_priority = self._finders(function)

        def call(*args: Any, **kwargs: Any) -> Any:
            key = None if find_key is None else checked_key(find_key(args, kwargs))
            if self._controller is not None:
                with Place(self, key, find_priority(args, kwargs)) as place:
                    value = function(*args, **kwargs)
                    if type(value) is CoroutineType:
                        refuse_coroutine(value)
                    return place.ended(value)
            places = self._places
            if not places.take(key):
                self._wait(places, key, find_priority(args, kwargs))
            try:
                value = function(*args, **kwargs)
                return refuse_coroutine(value) if type(value) is CoroutineType else value
            finally:
                if key is None:
                    places.put_back(None)
                else:
                    places.put_back_key(key)
                if places.busy:
                    places.settle()

        return call

    def _coroutine(self, function: Callable[..., Any]) -> Callable[..., Any]:
        find_key, find_priority = self._finders(function)

        async def call(*args: Any, **kwargs: Any) -> Any:
            key = None if find_key is None else checked_key(find_key(args, kwargs))
            if self._controller is not None:
                async with Place(self, key, find_priority(args, kwargs)) as place:
                    return place.ended(await function(*args, **kwargs))
            places = self._places
            if not places.take(key):
                await self._await(places, key, find_priority(args, kwargs))
            try:
                return await function(*args, **kwargs)
            finally:
                if key is None:
                    places.put_back(None)
                else:
                    places.put_back_key(key)
                if places.busy:
                    places.settle()

        return call

    def _finders(self, function: Callable[..., Any]) -> tuple[Finder | None, Finder]:
        priority = self._priority
        find_key = None if self._key is None else finder(self._key, function)
        if callable(priority):
            return find_key, finder(priority, function)
        return find_key, lambda args, kwargs: priority

    def _wait(self, places: Places, key: str | None, priority: int | None) -> None:
        seconds, until = self._patience()
        bell = threading.Event()
        can_wait = seconds > 0 and not in_event_loop()
        waiter = Waiter(key, self._urgency.of(priority), bell.set if can_wait else None)
        try:
            is_queued = places.line_up(waiter) == "waiting"
            if seconds > 0 and not can_wait:
                waiter.why += "; a plain function can't wait in an event loop"
            if is_queued:
                with Waiting(self._clock):
                    bulkhead_queue.wait(waiter, bell, seconds, self.sources, self._clock)
            self._end_wait(places, waiter, is_queued, until)
        except BaseException:
            places.give_up(waiter)
            raise

    async def _await(self, places: Places, key: str | None, priority: int | None) -> None:
        seconds, until = self._patience()
        bell = AsyncBell()
        waiter = Waiter(key, self._urgency.of(priority), bell.ring if seconds > 0 else None)
        try:
            is_queued = places.line_up(waiter) == "waiting"
            if is_queued:
                with Waiting(self._clock):
                    await bulkhead_queue.async_wait(
                        waiter, bell, seconds, self.sources, self._clock
                    )
            self._end_wait(places, waiter, is_queued, until)
        except BaseException:
            places.give_up(waiter)
            raise

    def _end_wait(self, places: Places, waiter: Waiter, is_queued: bool, until: str) -> None:
        """Raise unless `waiter` is admitted and, if it was queued, still allowed to begin."""
        state = places.leave(waiter)
        if is_queued:
            cancellation.check(self.sources)
        if state != "admitted":
            why = {"rejected": waiter.why, "gone": f"no place {until}"}.get(state, state)
            places.reject()
            note("bulkhead_full", self.name, why=why)
            raise BulkheadFull(self.name, why)

    def _patience(self) -> tuple[float, str]:
        """Return the longest wait in seconds, and the words for it."""
        parameters = self.parameters
        seconds = parameters.wait_seconds if parameters is not None and parameters.queue else 0.0
        left = deadline.left()
        if left is not None and left < seconds:
            return max(left, 0.0), "before the deadline"
        return seconds, f"within {seconds:.1f} s"
