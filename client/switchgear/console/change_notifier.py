"""Callbacks for changed switches: functions on a thread, coroutine functions on their event loop.

A callback receives the difference between the state of its last notification and the current state.
Changes while it is busy are merged into one per switch, so no queue builds up.
"""

import contextlib
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from queue import Empty, SimpleQueue
from typing import Literal

from switchgear.console.follower_thread import start_thread
from switchgear.decorators import is_coroutine_function
from switchgear.evaluation.bucketing import BUCKETS
from switchgear.evaluation.evaluation_view import EvaluationView
from switchgear.evaluation.snapshot import SwitchEntry, resolve_switch_id
from switchgear.evaluation.snapshot_store import SnapshotStore
from switchgear.lazy import asyncio

CHECK_SECONDS = 1.0
"""Interval of the checks for expired engagements."""
STOP_SECONDS = 0.2

ChangeState = Literal["released", "ramping", "engaged"]

log = logging.getLogger("switchgear")


@dataclass(frozen=True, slots=True)
class Change:
    """One change of `switch`: of its state, its share of allowed calls, or its reason.

    Changes in quick succession are merged into one. `reason` is the reason of the episode, even if
    the episode has ended. `allow_percent` is the share of calls that are allowed now, from 0 to
    100. `version` is the version of the snapshot; None for a switch that this process forced before
    its first snapshot.
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
    """A subscribed callback, with the switch states `known` from its last notification.

    `switches` are the ids of the switches that it is called for; all if empty.
    """

    callback: ChangeCallback
    switches: frozenset[str]
    loop: "asyncio.AbstractEventLoop | None"
    known: Mapping[str, SwitchEntry]
    is_busy: bool = False
    undelivered: int = 0
    """Number of changes passed to the callback's event loop and not yet delivered."""
    is_subscribed: bool = True
    is_warned: bool = False
    """True after the warning about a plain function that returns a coroutine was logged."""
    task: "asyncio.Task[None] | None" = None

    def changes_to(self, entries: Mapping[str, SwitchEntry], version: int | None) -> list[Change]:
        """Return the differences between the last notification and `entries`, by switch id."""
        known = self.known
        switches: Iterable[str] = self.switches or known.keys() | entries.keys()
        changes = [
            _make_change(switch, before, after, version)
            for switch in switches
            # Most entries are the same objects: see `snapshot.parse_snapshot`.
            if (before := known.get(switch)) is not (after := entries.get(switch))
            and _visible_fields(before) != _visible_fields(after)
        ]
        return sorted(changes, key=attrgetter("switch"))


class ChangeNotifier:
    """The change callbacks of a client. Thread-safe."""

    def __init__(self, store: SnapshotStore) -> None:
        self.dropped = 0
        """Number of changes that were lost with a closed event loop or a cancelled task."""
        self._store = store
        self._listeners: tuple[ChangeListener, ...] = ()
        self._stopped = False
        self._reset_threading()

    def add(self, callback: ChangeCallback, switches: Iterable[str]) -> Callable[[], None]:
        """Call `callback` with every change from now on; return a function that unsubscribes it.

        Raise :class:`RuntimeError` for a coroutine function without a running asyncio event loop,
        :class:`TypeError` for a callback that can't be called, and :class:`TypeError` or
        :class:`ValueError` for an invalid switch id.
        """
        if not callable(callback):
            kind = type(callback).__name__
            raise TypeError(f"callback must be a function or coroutine function, not {kind:.100}")
        named = frozenset(resolve_switch_id(switch) for switch in switches)
        loop = None
        if is_coroutine_function(callback):
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                raise RuntimeError(
                    "on_change needs a running asyncio event loop for a coroutine function, and"
                    " none is running"
                ) from None
        with self._lock:
            if self._on_view_change not in self._store.listeners:
                self._store.listeners.append(self._on_view_change)
            known = self._store.view.entries_in_force(self._store.clock.release_now())
            listener = ChangeListener(callback, named, loop, known)
            self._listeners = (*self._listeners, listener)
            self._start()
        return lambda: self._remove(listener)

    def notify(self) -> None:
        """Wake the thread, which checks for changes and calls the callbacks."""
        if self._wakes.empty():
            self._wakes.put(None)

    def stop(self) -> None:
        """End notifications; wait for a running callback for at most `STOP_SECONDS`."""
        with self._lock:
            self._stopped = True
            if self._on_view_change in self._store.listeners:
                self._store.listeners.remove(self._on_view_change)
            thread = self._thread
        self.notify()
        if thread is not None and thread is not threading.current_thread():
            thread.join(STOP_SECONDS)

    def stop_from_finalizer(self) -> None:
        """End notifications during garbage collection.

        Takes no lock, since the interrupted code may hold it.
        """
        self._stopped = True
        self.notify()

    def after_fork(self) -> None:
        """Restart in a forked child, without callbacks that belong to the parent's event loops."""
        self._listeners = tuple(each for each in self._listeners if each.loop is None)
        self._reset_threading()
        for listener in self._listeners:
            listener.is_busy, listener.undelivered = False, 0
        if self._listeners:
            self._start()

    def _reset_threading(self) -> None:
        self._lock = threading.RLock()
        # Unlike an event, a SimpleQueue is reentrant: a finalizer may use it.
        self._wakes: SimpleQueue[None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def _start(self) -> None:
        if self._thread is None and not self._stopped:
            problem = "change callbacks are not called"
            self._thread = start_thread("switchgear-announcer", self._run, problem)

    def _on_view_change(self, _before: EvaluationView, _after: EvaluationView) -> None:
        self.notify()

    def _remove(self, listener: ChangeListener) -> None:
        with self._lock:
            listener.is_subscribed = False
            self._listeners = tuple(each for each in self._listeners if each is not listener)

    def _run(self) -> None:
        view: EvaluationView | None = None
        entries: Mapping[str, SwitchEntry] = {}
        ends: list[float] = []
        ended = 0
        while not self._stopped:
            now = self._store.clock.release_now()
            if view is not self._store.view:
                view = self._store.view
                ends = [
                    at for entry in view.entries.values() if (at := entry.lapses_at) is not None
                ]
                ended = -1
            over = 0 if now is None else sum(at <= now for at in ends)
            if over != ended:
                ended, entries = over, view.entries_in_force(now)
            for listener in self._listeners:
                if self._stopped:
                    return
                self._deliver(listener, entries, view.version)
            with contextlib.suppress(Empty):
                self._wakes.get(timeout=CHECK_SECONDS if ended < len(ends) else None)

    def _deliver(
        self, listener: ChangeListener, entries: Mapping[str, SwitchEntry], version: int | None
    ) -> None:
        loop = listener.loop
        if listener.known is entries or (listener.is_busy and loop and not loop.is_closed()):
            return
        changes = listener.changes_to(entries, version)
        listener.known = entries
        if not changes:
            return
        if loop is None:
            for change in changes:
                if listener.is_subscribed and not self._stopped:
                    _call_callback(listener, change)
            return
        # If the loop is closed, its undelivered changes are lost, too.
        lost = listener.undelivered + len(changes)
        listener.is_busy, listener.undelivered = True, len(changes)
        try:
            loop.call_soon_threadsafe(self._create_task, listener, changes)
        except RuntimeError:  # The loop is closed.
            self.dropped += lost
            self._remove(listener)

    def _create_task(self, listener: ChangeListener, changes: list[Change]) -> None:
        listener.task = asyncio.create_task(self._await_all(listener, changes))
        listener.task.add_done_callback(lambda _task: self._on_task_done(listener))

    async def _await_all(self, listener: ChangeListener, changes: list[Change]) -> None:
        for change in changes:
            listener.undelivered -= 1
            if listener.is_subscribed and not self._stopped:
                await _await_callback(listener, change)

    def _on_task_done(self, listener: ChangeListener) -> None:
        """Mark `listener` as idle after its task; count changes it did not get in `dropped`."""
        self.dropped += listener.undelivered
        listener.is_busy, listener.undelivered, listener.task = False, 0, None
        self.notify()


def _call_callback(listener: ChangeListener, change: Change) -> None:
    try:
        answer = listener.callback(change)
        if inspect.iscoroutine(answer):
            answer.close()
            if not listener.is_warned:
                listener.is_warned = True
                log.error(
                    "switchgear: a callback returned a coroutine that was not awaited: pass the"
                    " coroutine function itself to on_change"
                )
    except BaseException:  # Not even `sys.exit` may end the thread of all callbacks.
        log.exception("switchgear: a callback failed on %s", change)


async def _await_callback(listener: ChangeListener, change: Change) -> None:
    try:
        answer = listener.callback(change)
        if isinstance(answer, Awaitable):
            await answer
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        log.exception("switchgear: a callback was cancelled on %s", change)
    except Exception:
        log.exception("switchgear: a callback failed on %s", change)


def _visible_fields(entry: SwitchEntry | None) -> tuple[str, int, str] | None:
    return None if entry is None else (entry.state, entry.allow_points, entry.reason)


def _make_change(
    switch: str, before: SwitchEntry | None, after: SwitchEntry | None, version: int | None
) -> Change:
    entry = after or before
    points = BUCKETS if after is None else after.allow_points
    return Change(
        switch=switch,
        before=_state_of(before),
        after=_state_of(after),
        reason="" if entry is None else entry.reason,
        allow_percent=points * 100 / BUCKETS,
        version=version,
    )


def _state_of(entry: SwitchEntry | None) -> ChangeState:
    return "released" if entry is None else entry.state
