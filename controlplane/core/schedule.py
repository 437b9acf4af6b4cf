"""The schedule of beat: each second, send the ticks that are due and have work pending."""

import queue
import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass

import structlog
from django.db import DatabaseError, InterfaceError

from controlplane.core import threads, ticks
from controlplane.core.ticks import Tick

SENT_BY = "beat"
SENT_ANYWAY_SECONDS = 60
"""Interval at which idle ticks are sent anyway, in case their `pending` misses work."""
MAX_WAIT_SECONDS = 0.5

FindIdle = Callable[[Collection[str]], set[str]]
Question = tuple[Collection[str], Future[set[str]]]

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Batch:
    """Ticks of one queue and interval, which one worker runs one after another."""

    queue: str
    seconds: int
    names: tuple[str, ...]


class Schedule:
    """Schedules each tick at multiples of its interval, so ticks of one interval are sent together.

    `find_idle` returns the given ticks that have no work.
    """

    def __init__(self, known: Mapping[str, Tick], find_idle: FindIdle) -> None:
        self._known = known
        self._find_idle = find_idle
        self._sent_at = dict.fromkeys(known, 0)

    def take(self, passed_seconds: int) -> list[Batch]:
        """Return the batches due `passed_seconds` after the start, and count them as sent."""
        due = [
            n for n, tick in self._known.items() if self._is_over(n, tick.seconds, passed_seconds)
        ]
        skippable = [
            name
            for name in due
            if self._known[name].pending is not None
            and not self._is_over(name, SENT_ANYWAY_SECONDS, passed_seconds)
        ]
        idle = self._find_idle(skippable) if skippable else set()
        self._sent_at.update(dict.fromkeys(due, passed_seconds))
        return _batched([self._known[name] for name in due if name not in idle])

    def _is_over(self, name: str, seconds: int, passed_seconds: int) -> bool:
        """Return True if a multiple of `seconds` has passed since the tick was last sent."""
        return passed_seconds // seconds > self._sent_at[name] // seconds


def _batched(due: Collection[Tick]) -> list[Batch]:
    groups: dict[tuple[int, str], list[str]] = {}
    for tick in due:
        groups.setdefault((tick.seconds, tick.queue), []).append(tick.name)
    return [
        Batch(queue, seconds, tuple(names)) for (seconds, queue), names in sorted(groups.items())
    ]


class IdleTicks:
    """Finds ticks without pending work in the database, and records their turn.

    The query runs in a thread of its own with a short timeout: without an answer, all ticks count
    as having work.
    """

    def __init__(self, max_wait_seconds: float = MAX_WAIT_SECONDS) -> None:
        self._max_wait_seconds = max_wait_seconds
        self._questions: queue.SimpleQueue[Question | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True, name="idle-ticks")
        self._asked: Future[set[str]] | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._questions.put(None)
        self._thread.join()

    def find(self, names: Collection[str]) -> set[str]:
        if self._asked is not None and not self._asked.done():
            return set()
        self._asked = Future()
        self._questions.put((names, self._asked))
        try:
            return self._asked.result(self._max_wait_seconds)
        except (TimeoutError, DatabaseError, InterfaceError) as error:
            log.info("schedule.idle_check_failed", error=str(error).strip() or type(error).__name__)
            return set()

    def _run(self) -> None:
        while (question := self._questions.get()) is not None:
            names, answer = question
            try:
                idle = ticks.without_work(names)
                ticks.note(idle, SENT_BY)
            except Exception as error:
                threads.forget_connection()
                answer.set_exception(error)  # Raised again in `find`.
            else:
                answer.set_result(idle)
        threads.forget_connection()
