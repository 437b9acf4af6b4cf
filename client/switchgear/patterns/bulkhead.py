"""So many calls at once and no more, so that one slow dependency can't take all threads."""

import threading
import time
from collections.abc import Callable, Hashable, Mapping
from types import CoroutineType, TracebackType
from typing import Any, TypeVar

from switchgear import cancellation
from switchgear.async_backend import AsyncBell
from switchgear.finding import Finder, finder
from switchgear.journal import note
from switchgear.patterns import deadline, entries, forks, urgency
from switchgear.patterns.parameters import BulkheadParameters, Tier, limits_of
from switchgear.patterns.places import Occupancy, Places, Waiter
from switchgear.patterns.queue_time import Waiting
from switchgear.refusals import BulkheadFull
from switchgear.wrapping import by_kind, in_event_loop, refuse_coroutine

F = TypeVar("F", bound=Callable[..., Any])


class Bulkhead:
    """Lets at most `limit` calls run at once; some more wait for a place, and the rest gets
    :class:`BulkheadFull`. Without parameters it lets all pass, and counts them.

    Threads and tasks wait in one queue: higher `priority` first, then who came first. Of one `key`,
    such as a user, no more than `per_key_limit` run at once; who waits for that holds up nobody
    else. Both may be found in the arguments of a call, as a guard finds its keys: what finds them
    gets those arguments that its own parameters name, or all of them. A priority that is found and
    is None is 0; so is one that is no whole number, of which the log is told once.

    A decorator, and a context manager (`with` or `async with`), in which neither is looked for:
    `with bulkhead.of(key=user, priority=10):` says them. Nested in itself it takes two places.
    A function that isn't asynchronous does not wait inside an event loop, which would stand still
    with all that could give a place back: it gets a place at once, or none. `clock` is monotonic;
    that of a :class:`switchgear.testing.FakeClock` ends waits when it is advanced.
    """

    def __init__(
        self,
        name: str = "unnamed",
        parameters: BulkheadParameters | Tier | None = None,
        *,
        key: Callable[..., Hashable] | None = None,
        priority: int | Callable[..., int | None] | None = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._clock = clock
        self._key = key
        self._priority = urgency.checked(priority)
        self._urgency = urgency.Urgency(name)
        self.parameters = limits_of(parameters)
        self._places = Places(self.parameters)
        forks.register(self)

    def __call__(self, function: F) -> F:
        """`function`, of which so many calls run at once; a generator has its place from its first
        step to its end."""
        find_key, find_priority = self._finders(function)

        def place(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Place:
            key = None if find_key is None else find_key(args, kwargs)
            return Place(self, key, find_priority(args, kwargs))

        return by_kind(
            function,
            plain=self._plain,
            coroutine=self._coroutine,
            stream=place,
            what="a bulkhead",
        )

    def of(self, key: Hashable = None, priority: int | None = 0) -> "Place":
        """For one `with` or `async with`: a place for `key`, with that priority."""
        return Place(self, key, priority)

    def configure(self, parameters: BulkheadParameters | Tier | None) -> None:
        """From now on; nobody who has a place loses it."""
        self.parameters = limits_of(parameters)
        self._places.configure(self.parameters)

    def look(self) -> Occupancy:
        """How full it is now."""
        return self._places.look()

    def take(self, key: Hashable = None, priority: int | None = 0) -> Places:
        """A place, waited for if need be; what it is given back to. For adapters."""
        places = self._places
        if not places.take(key):
            self._wait(places, key, priority)
        return places

    async def atake(self, key: Hashable = None, priority: int | None = 0) -> Places:
        """The same, in an event loop."""
        places = self._places
        if not places.take(key):
            await self._await(places, key, priority)
        return places

    def after_fork(self) -> None:
        """In a child nobody is in it: who brought a place along gives it to the old ones."""
        self._places.after_fork()
        self._places = Places(self.parameters)

    def __enter__(self) -> None:
        self._entered(self.take(None, self._fixed_priority()))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._left().give()

    async def __aenter__(self) -> None:
        self._entered(await self.atake(None, self._fixed_priority()))

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._left().give()

    def _entered(self, places: Places) -> None:
        entries.entered(self, places, None)

    def _left(self) -> Places:
        """Those that the place is from, which in a child of a fork may be others than now."""
        places: Places
        places, _ = entries.left(self) or (self._places, None)  # Left elsewhere than entered.
        return places

    def _fixed_priority(self) -> int:
        return 0 if callable(self._priority) else self._priority

    def _plain(self, function: Callable[..., Any]) -> Callable[..., Any]:
        find_key, find_priority = self._finders(function)

        def call(*args: Any, **kwargs: Any) -> Any:
            key = None if find_key is None else find_key(args, kwargs)
            places = self._places
            if not places.take(key):
                self._wait(places, key, find_priority(args, kwargs))
            try:
                value = function(*args, **kwargs)
                return refuse_coroutine(value) if type(value) is CoroutineType else value
            finally:
                places.give(key)

        return call

    def _coroutine(self, function: Callable[..., Any]) -> Callable[..., Any]:
        find_key, find_priority = self._finders(function)

        async def call(*args: Any, **kwargs: Any) -> Any:
            key = None if find_key is None else find_key(args, kwargs)
            places = self._places
            if not places.take(key):
                await self._await(places, key, find_priority(args, kwargs))
            try:
                return await function(*args, **kwargs)
            finally:
                places.give(key)

        return call

    def _finders(self, function: Callable[..., Any]) -> tuple[Finder | None, Finder]:
        priority = self._priority
        find_key = None if self._key is None else finder(self._key, function)
        if callable(priority):
            return find_key, finder(priority, function)
        return find_key, lambda args, kwargs: priority

    def _wait(self, places: Places, key: Hashable, priority: int | None) -> None:
        seconds, until = self._patience()
        bell = threading.Event()
        wake = None if seconds <= 0 or in_event_loop() else bell.set
        waiter = places.line_up(key, self._urgency.of(priority), wake)
        if isinstance(waiter, str):
            raise self._full(places, waiter)
        try:
            if waiter.state == "waiting":
                with Waiting(self._clock):
                    cancellation.wait(bell, seconds, self._clock)
            state = places.leave(waiter)
        except BaseException:
            _give_up(places, waiter)
            raise
        if state != "admitted":
            raise self._full(places, state if state == "displaced" else f"no place {until}")

    async def _await(self, places: Places, key: Hashable, priority: int | None) -> None:
        seconds, until = self._patience()
        bell = AsyncBell()
        wake = bell.ring if seconds > 0 else None
        waiter = places.line_up(key, self._urgency.of(priority), wake)
        if isinstance(waiter, str):
            raise self._full(places, waiter)
        try:
            if waiter.state == "waiting":
                with Waiting(self._clock):
                    await cancellation.async_wait(bell, seconds, self._clock)
            state = places.leave(waiter)
        except BaseException:
            _give_up(places, waiter)
            raise
        if state != "admitted":
            raise self._full(places, state if state == "displaced" else f"no place {until}")

    def _patience(self) -> tuple[float, str]:
        """How long to wait at most, and how that is said."""
        seconds = 0.0 if self.parameters is None else self.parameters.queue_seconds
        left = deadline.left()
        if left is not None and left < seconds:
            return max(left, 0.0), "before the deadline"
        return seconds, f"within {seconds:.1f} s"

    def _full(self, places: Places, why: str) -> BulkheadFull:
        places.reject()
        note("bulkhead_full", self.name, why=why)
        return BulkheadFull(self.name, why)


class Place:
    """One place in a bulkhead, for a key and with a priority: for one `with` or `async with` at a
    time."""

    def __init__(self, bulkhead: Bulkhead, key: Hashable, priority: int | None) -> None:
        self._bulkhead = bulkhead
        self._key = key
        self._priority = priority
        self._taken: list[Places] = []

    def __enter__(self) -> None:
        self._taken.append(self._bulkhead.take(self._key, self._priority))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._taken.pop().give(self._key)

    async def __aenter__(self) -> None:
        self._taken.append(await self._bulkhead.atake(self._key, self._priority))

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._taken.pop().give(self._key)


def _give_up(places: Places, waiter: Waiter) -> None:
    if places.leave(waiter) == "admitted":
        places.give(waiter.key)
