"""Celery beat's schedule: each second, the ticks (periodic tasks) that are due and have work."""

import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass

import structlog
from django.db import DatabaseError, InterfaceError

from controlplane.core import threads, ticks
from controlplane.core.ticks import RegisteredTick

SENT_BY = "beat"
SENT_ANYWAY_SECONDS = 60
"""Interval in which idle ticks are sent, too, in case their `pending` misses work."""
MAX_WAIT_SECONDS = 0.5

FindIdle = Callable[[Collection[str]], set[str]]

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Batch:
    """Due ticks with the same queue and interval, which a worker runs one after another."""

    queue: str
    seconds: int
    names: tuple[str, ...]


class Schedule:
    """Decides which ticks are due, at multiples of their intervals; `find_idle` finds idle ones."""

    def __init__(self, ticks_by_name: Mapping[str, RegisteredTick], find_idle: FindIdle) -> None:
        self._ticks = ticks_by_name
        self._find_idle = find_idle
        self._sent_at = dict.fromkeys(ticks_by_name, 0)

    def take(self, passed_seconds: int) -> list[Batch]:
        """Return the batches of ticks due `passed_seconds` after the start; mark them as sent."""
        due = [
            name
            for name, tick in self._ticks.items()
            if self._is_due(name, tick.seconds, passed_seconds)
        ]
        skippable = [
            name
            for name in due
            if self._ticks[name].pending is not None
            and not self._is_due(name, SENT_ANYWAY_SECONDS, passed_seconds)
        ]
        idle = self._find_idle(skippable) if skippable else set()
        self._sent_at.update(dict.fromkeys(due, passed_seconds))
        groups = defaultdict[tuple[int, str], list[str]](list)
        for name in due:
            if name not in idle:
                groups[self._ticks[name].seconds, self._ticks[name].queue].append(name)
        return [
            Batch(queue, seconds, tuple(names))
            for (seconds, queue), names in sorted(groups.items())
        ]

    def _is_due(self, name: str, seconds: int, passed_seconds: int) -> bool:
        """Return True if a multiple of `seconds` has been passed since the tick was last sent."""
        return passed_seconds // seconds > self._sent_at[name] // seconds


class IdleTicks:
    """Finds the ticks that have no work, by a query in a thread.

    If the query fails or takes too long, it finds none, so that all ticks are sent.
    """

    def __init__(self, max_wait_seconds: float = MAX_WAIT_SECONDS) -> None:
        self._max_wait_seconds = max_wait_seconds
        self._requests = queue.SimpleQueue[tuple[Collection[str], Future[set[str]]] | None]()
        self._thread = threading.Thread(target=self._run, daemon=True, name="idle-ticks")
        self._pending: Future[set[str]] | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._requests.put(None)
        self._thread.join()

    def find(self, names: Collection[str]) -> set[str]:
        if self._pending is not None and not self._pending.done():
            return set()
        self._pending = Future()
        self._requests.put((names, self._pending))
        try:
            return self._pending.result(self._max_wait_seconds)
        except (TimeoutError, DatabaseError, InterfaceError) as error:
            log.info("schedule.idle_check_failed", error=str(error).strip() or type(error).__name__)
            return set()

    def _run(self) -> None:
        while (request := self._requests.get()) is not None:
            names, result = request
            try:
                idle = ticks.find_idle(names)
                ticks.record_runs(idle, SENT_BY)
            except Exception as error:
                threads.close_connection()
                result.set_exception(error)  # Raised again in `find`.
            else:
                result.set_result(idle)
        threads.close_connection()
