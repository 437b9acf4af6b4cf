"""Tells callbacks which switches have changed: on a thread of its own, or on their event loop.

What is to be told is the difference between what a callback was told last and what holds now. So
whatever happens while it is busy becomes one change per switch, and nothing piles up.
"""

import contextlib
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Literal

from switchgear.evaluation.bucketing import BUCKETS
from switchgear.evaluation.snapshot import Entry, switch_id
from switchgear.evaluation.snapshot_store import Memory
from switchgear.evaluation.snapshot_view import View
from switchgear.lazy import asyncio
from switchgear.wrapping import is_coroutine_function

CHECK_SECONDS = 1.0
"""While an engagement will end by itself, it is looked after that often: the console's time may
turn out to be another one."""
STOP_SECONDS = 0.2

ChangeState = Literal["released", "ramping", "engaged"]

log = logging.getLogger("switchgear")


@dataclass(frozen=True, slots=True)
class Change:
    """`switch` was in one state, and is in another, lets another share of the calls through, or
    has another reason. What happened in quick succession is one change.

    `reason` is that of the episode, also of one that has ended. `allow_percent` is the share that
    flows now, from 0 to 100. `version` is that of the snapshot that says so; None if it is forced
    here and there is no snapshot yet.
    """

    switch: str
    before: ChangeState
    after: ChangeState
    reason: str
    allow_percent: float
    version: int | None


ChangeCallback = Callable[[Change], object]
"""A function, or a coroutine function."""


@dataclass(eq=False)
class ChangeListener:
    """A callback, the switches it wants to hear of (none: all), and which entries it knows."""

    callback: ChangeCallback
    switches: frozenset[str]
    loop: "asyncio.AbstractEventLoop | None"
    seen: Mapping[str, Entry]
    is_busy: bool = False
    undelivered: int = 0
    """Changes that its event loop has been given, and has not called it with."""
    is_subscribed: bool = True
    is_warned: bool = False
    """Whether it has given a coroutine, although it is no coroutine function."""
    task: "asyncio.Task[None] | None" = None

    def changes_to(self, entries: Mapping[str, Entry], version: int | None) -> list[Change]:
        """Return the changes from the known entries to `entries`, by switch id."""
        known = self.seen
        switches: Iterable[str] = self.switches or known.keys() | entries.keys()
        changed = [
            switch
            for switch in switches
            # Most entries are the same objects: see `snapshot.read`.
            if (before := known.get(switch)) is not (after := entries.get(switch))
            and _visible_fields(before) != _visible_fields(after)
        ]
        return [
            _make_change(switch, known.get(switch), entries.get(switch), version)
            for switch in sorted(changed)
        ]


class ChangeNotifier:
    """The callbacks of a client. Every method may be called from any thread."""

    def __init__(self, memory: Memory) -> None:
        self.dropped = 0
        """Changes of which a callback was not told, because its event loop was closed, or its task
        cancelled."""
        self._memory = memory
        self._listeners: tuple[ChangeListener, ...] = ()
        self._stopped = False
        self._reset_threading()

    def add(self, callback: ChangeCallback, switches: Iterable[str]) -> Callable[[], None]:
        """Call `callback` with every change from now on; return a function that unsubscribes it.
        Raises :class:`RuntimeError` for a coroutine function without a running asyncio event loop,
        :class:`TypeError` for a callback that can't be called, and that or :class:`ValueError` for
        an invalid switch id."""
        if not callable(callback):
            kind = type(callback).__name__
            raise TypeError(f"callback must be a function or coroutine function, not {kind:.100}")
        named = frozenset(switch_id(switch) for switch in switches)
        loop = None
        if is_coroutine_function(callback):
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                raise RuntimeError(
                    "a coroutine function is called on the event loop of asyncio that runs when it"
                    " is given to on_change, and none does"
                ) from None
        with self._lock:
            if self._on_view_change not in self._memory.watchers:
                self._memory.watchers.append(self._on_view_change)
            known = _entries_in_force(self._memory.view, self._memory.clock.release_now())
            listener = ChangeListener(callback, named, loop, known)
            self._listeners = (*self._listeners, listener)
            self._start()
        return lambda: self._remove(listener)

    def notify(self) -> None:
        """Something may have changed."""
        if self._wakes.empty():
            self._wakes.put(None)

    def stop(self) -> None:
        """Tell nobody any more. A callback that is just being called is not waited for."""
        with self._lock:
            self._stopped = True
            if self._on_view_change in self._memory.watchers:
                self._memory.watchers.remove(self._on_view_change)
            thread = self._thread
        self.notify()
        if thread is not None and thread is not threading.current_thread():
            thread.join(STOP_SECONDS)

    def stop_from_finalizer(self) -> None:
        """As :meth:`stop`, for a finalizer: whoever is interrupted by it may hold any lock."""
        self._stopped = True
        self.notify()

    def after_fork(self) -> None:
        """In a child, which has neither the thread nor, as far as we know, the event loops."""
        self._listeners = tuple(each for each in self._listeners if each.loop is None)
        self._reset_threading()
        for listener in self._listeners:
            listener.is_busy, listener.undelivered = False, 0
        if self._listeners:
            self._start()

    def _reset_threading(self) -> None:
        self._lock = threading.RLock()
        # Unlike an event it may be put to by a finalizer at any moment.
        self._wakes: SimpleQueue[None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def _start(self) -> None:
        if self._thread is None and not self._stopped:
            thread = threading.Thread(target=self._run, name="switchgear-announcer", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                log.error("switchgear: changes are not told: %s", error)
            else:
                self._thread = thread

    def _on_view_change(self, _before: View, _after: View) -> None:
        self.notify()

    def _remove(self, listener: ChangeListener) -> None:
        with self._lock:
            listener.is_subscribed = False
            self._listeners = tuple(each for each in self._listeners if each is not listener)

    def _run(self) -> None:
        view: View | None = None
        entries: Mapping[str, Entry] = {}
        lapses: list[float] = []
        ended = 0
        while not self._stopped:
            now = self._memory.clock.release_now()
            if view is not self._memory.view:
                view = self._memory.view
                lapses = _end_times(view)
                ended = -1
            over = 0 if now is None else sum(at <= now for at in lapses)
            if over != ended:
                ended, entries = over, _entries_in_force(view, now)
            for listener in self._listeners:
                if self._stopped:
                    return
                self._deliver(listener, entries, view.version)
            with contextlib.suppress(Empty):
                self._wakes.get(timeout=CHECK_SECONDS if ended < len(lapses) else None)

    def _deliver(
        self, listener: ChangeListener, entries: Mapping[str, Entry], version: int | None
    ) -> None:
        loop = listener.loop
        if listener.seen is entries or (listener.is_busy and loop and not loop.is_closed()):
            return
        changes = listener.changes_to(entries, version)
        listener.seen = entries
        if not changes:
            return
        if loop is None:
            for change in changes:
                if listener.is_subscribed and not self._stopped:
                    _call(listener, change)
            return
        # What it was given last and its loop did not come to, before it was closed, is lost, too.
        lost = listener.undelivered + len(changes)
        listener.is_busy, listener.undelivered = True, len(changes)
        try:
            loop.call_soon_threadsafe(self._create_task, listener, changes)
        except RuntimeError:  # It is closed, for good.
            self.dropped += lost
            self._remove(listener)

    def _create_task(self, listener: ChangeListener, changes: list[Change]) -> None:
        """On the listener's event loop, which would not keep the task from being collected."""
        listener.task = asyncio.create_task(self._await_all(listener, changes))
        listener.task.add_done_callback(lambda _task: self._on_task_done(listener))

    async def _await_all(self, listener: ChangeListener, changes: list[Change]) -> None:
        for change in changes:
            listener.undelivered -= 1
            if listener.is_subscribed and not self._stopped:
                await _await(listener, change)

    def _on_task_done(self, listener: ChangeListener) -> None:
        """Also if somebody has cancelled the task, perhaps before it began."""
        self.dropped += listener.undelivered
        listener.is_busy, listener.undelivered, listener.task = False, 0, None
        self.notify()


def _call(listener: ChangeListener, change: Change) -> None:
    try:
        answer = listener.callback(change)
        if inspect.iscoroutine(answer):
            answer.close()
            if not listener.is_warned:
                listener.is_warned = True
                log.error(
                    "switchgear: a callback gives a coroutine, which nobody awaits: give the"
                    " coroutine function itself to on_change"
                )
    except BaseException:  # Not even `sys.exit` may end the thread for all the others.
        log.exception("switchgear: a callback failed on %s", change)


async def _await(listener: ChangeListener, change: Change) -> None:
    try:
        answer = listener.callback(change)
        if isinstance(answer, Awaitable):
            await answer
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        log.exception("switchgear: a callback was cut short on %s", change)
    except Exception:
        log.exception("switchgear: a callback failed on %s", change)


def _end_times(view: View) -> list[float]:
    """When engagements will end by themselves, by the console's clock."""
    return [at for entry in view.entries.values() if (at := entry.lapses_at) is not None]


def _entries_in_force(view: View, now: float | None) -> Mapping[str, Entry]:
    """Return the entries without those that have ended by themselves; none has while `now` is
    unknown."""
    return {
        switch: entry
        for switch, entry in view.entries.items()
        if (at := entry.lapses_at) is None or now is None or at > now
    }


def _visible_fields(entry: Entry | None) -> tuple[str, int, str] | None:
    return None if entry is None else (entry.state, entry.allow_points, entry.reason)


def _make_change(
    switch: str, before: Entry | None, after: Entry | None, version: int | None
) -> Change:
    of = after or before
    points = BUCKETS if after is None else after.allow_points
    return Change(
        switch=switch,
        before=_state_of(before),
        after=_state_of(after),
        reason="" if of is None else of.reason,
        allow_percent=points * 100 / BUCKETS,
        version=version,
    )


def _state_of(entry: Entry | None) -> ChangeState:
    if entry is None:
        return "released"
    return "ramping" if entry.state == "ramping" else "engaged"
