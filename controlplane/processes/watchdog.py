"""The watchdog: runs late ticks (periodic tasks), in case the broker, beat or worker is dead."""

import math
import threading
import time

import structlog
from django.db import DatabaseError, InterfaceError

from controlplane.core import heartbeats, threads, ticks
from controlplane.core.liveness import Loop

NAME = "watchdog"
PATIENCE_SECONDS = 5.0
INTERVAL_SECONDS = 1.0
STARTUP_SECONDS = 60.0
"""Time after a start in which worker and beat may still be starting."""
MAX_CHECK_SECONDS = 120.0
"""Longest duration of a check; a lost database connection is noticed long before."""

log = structlog.get_logger(__name__)


class Watchdog:
    """A loop that checks all ticks each second and runs late ones, each in its own thread.

    A tick is late `PATIENCE_SECONDS` after its time, or at once if the watchdog has taken it over.
    In the first `startup_seconds`, the first late run of a tick that hasn't run since the watchdog
    started is not logged, because worker and beat may still be starting.
    """

    def __init__(
        self,
        stop: threading.Event,
        settle_seconds: float = PATIENCE_SECONDS,
        startup_seconds: float = STARTUP_SECONDS,
    ) -> None:
        self.loop = Loop(may_rest_seconds=MAX_CHECK_SECONDS)
        self._stop = stop
        self._started = time.monotonic()
        self._startup_seconds = startup_seconds
        self._settle_seconds = settle_seconds  # Worker and beat may just be starting too.
        self._lock = threading.Lock()
        self._running: set[str] = set()
        self._taken_over: set[str] = set()
        self._first_runs: set[str] = set()
        self._reachable = True

    def run(self) -> None:
        """Check all ticks each second until stopped; errors, as without database, don't end it."""
        settled_at = time.monotonic() + self._settle_seconds
        while not self._stop.is_set():
            self.loop.record_turn()
            try:
                if time.monotonic() < settled_at:
                    heartbeats.record_heartbeat(NAME)
                else:
                    self.check_ticks()
                self._reachable = True
            except (DatabaseError, InterfaceError) as error:
                if self._reachable:
                    log.warning("watchdog.database_unreachable", error=str(error).strip())
                self._reachable = False
                threads.close_connection()
            except Exception:
                log.exception("watchdog.failed")
                threads.close_connection()
            self._stop.wait(INTERVAL_SECONDS)

    def check_ticks(self) -> None:
        """Record a heartbeat and start a thread for each late tick that isn't running."""
        heartbeats.record_heartbeat(NAME)
        taken_over, handed_back = [], []
        # Copied before reading the rows, which may not include a run that ends in between.
        with self._lock:
            running = set(self._running)
        for status in ticks.list_statuses():
            name = status.tick.name
            if name in running:
                continue
            is_own = status.ran_by == NAME and name in self._taken_over
            if status.late_seconds > (0 if is_own else PATIENCE_SECONDS):
                self._start_tick(name)
                if self._is_first_run(status):
                    self._first_runs.add(name)
                    continue
                self._first_runs.discard(name)
                if name not in self._taken_over:
                    taken_over.append(name)
            elif not is_own and name in self._taken_over:
                handed_back.append(name)
        # One line for all ticks, as it may be all of them at startup.
        if taken_over:
            self._taken_over.update(taken_over)
            log.warning("watchdog.ticks_taken_over", ticks=taken_over)
        if handed_back:
            self._taken_over.difference_update(handed_back)
            log.info("watchdog.ticks_handed_back", ticks=handed_back)

    def _is_first_run(self, status: ticks.TickStatus) -> bool:
        """Return True if the watchdog has just started and nothing ran this tick since."""
        uptime = time.monotonic() - self._started
        if uptime >= self._startup_seconds:
            return False
        if math.isinf(status.late_seconds):
            return True
        age = status.tick.seconds + status.late_seconds
        has_run = age < uptime or status.tick.name in self._first_runs
        return not has_run

    def _start_tick(self, name: str) -> None:
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
