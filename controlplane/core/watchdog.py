"""The watchdog: runs any tick that is late, so that a dead broker, beat or worker stops nothing."""

import math
import threading
import time

import structlog
from django.db import DatabaseError, InterfaceError

from . import heartbeats, threads, ticks
from .liveness import Loop

NAME = "watchdog"
PATIENCE_SECONDS = 5.0
LOOK_EVERY_SECONDS = 1.0
LOOK_MAY_TAKE_SECONDS = 120.0
"""Longest check; a silently lost database is noticed long before."""

log = structlog.get_logger(__name__)


class Watchdog:
    """Checks every tick each second and runs late ones, each in its own thread.

    A tick last run by the watchdog is late as soon as it is due: until a worker takes it back, it
    keeps its normal interval. A tick that never ran, as at the first start of an installation, runs
    once without a warning and is then expected from a worker.
    """

    def __init__(self, stop: threading.Event, settle_seconds: float = PATIENCE_SECONDS) -> None:
        self.loop = Loop(may_rest_seconds=LOOK_MAY_TAKE_SECONDS)
        self._stop = stop
        self._settle_seconds = settle_seconds  # Worker and beat may just be starting too.
        self._lock = threading.Lock()
        self._running: set[str] = set()
        self._taken_over: set[str] = set()
        self._first_runs: set[str] = set()
        self._reachable = True

    def run(self) -> None:
        """Run until stopped; errors, such as an unreachable database, don't end the loop."""
        settled = time.monotonic() + self._settle_seconds
        while not self._stop.is_set():
            self.loop.turned()
            try:
                if time.monotonic() < settled:
                    heartbeats.beat(NAME)
                else:
                    self.look()
                self._reachable = True
            except (DatabaseError, InterfaceError) as error:
                if self._reachable:
                    log.warning("watchdog.blind", error=str(error).strip())
                self._reachable = False
                threads.forget_connection()
            except Exception:
                log.exception("watchdog.failed")
                threads.forget_connection()
            self._stop.wait(LOOK_EVERY_SECONDS)

    def look(self) -> None:
        """Record a heartbeat and start a thread for each late tick that isn't running."""
        heartbeats.beat(NAME)
        taken_over, handed_back = [], []
        # Before reading the rows, which may not include a run that ends in between.
        with self._lock:
            running = set(self._running)
        for turn in ticks.turns():
            name = turn.tick.name
            if name in running:
                continue
            if math.isinf(turn.late_seconds):
                self._begin(name)
                self._first_runs.add(name)
                continue
            own = turn.ran_by == NAME and name not in self._first_runs
            if turn.late_seconds > (0 if own else PATIENCE_SECONDS):
                self._first_runs.discard(name)
                self._begin(name)
                if name not in self._taken_over:
                    taken_over.append(name)
            elif not own and name in self._taken_over:
                handed_back.append(name)
        # At startup these may be all ticks, so log one line for all.
        if taken_over:
            self._taken_over.update(taken_over)
            log.warning("watchdog.took_over", ticks=taken_over)
        if handed_back:
            self._taken_over.difference_update(handed_back)
            log.info("watchdog.handed_back", ticks=handed_back)

    def _begin(self, name: str) -> None:
        with self._lock:
            self._running.add(name)
        threading.Thread(target=self._run_tick, args=(name,), daemon=True, name=name).start()

    def _run_tick(self, name: str) -> None:
        try:
            with threads.own_connection():
                ticks.run(name, NAME)
        finally:
            with self._lock:
                self._running.discard(name)
