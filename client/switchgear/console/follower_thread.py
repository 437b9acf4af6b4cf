"""The base of daemon threads that follow the console in a loop, with backoff after failures."""

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from switchgear.clock import ConsoleClock
from switchgear.console.errors import RequestFailed
from switchgear.console.timings import CpuThrottle, Timings, failure_delay, parse_retry_after

WARNING_SECONDS = 30.0
"""Minimum time between two warnings about an unavailable console."""

log = logging.getLogger("switchgear")


def start_thread(name: str, run: Callable[[], None], problem: str) -> threading.Thread | None:
    """Start a daemon thread and return it; if that fails, log `problem` and return None."""
    thread = threading.Thread(target=run, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        log.error("switchgear: %s: %s", problem, error)
        return None
    return thread


class FollowerThread(ABC):
    """A daemon thread that follows the console from :meth:`start` to :meth:`stop`.

    It repeats :meth:`_follow_once`, which a subclass implements.
    """

    def __init__(self, name: str, clock: ConsoleClock, timings: Timings) -> None:
        self.error: str | None = None
        """Description of the last failure; None after a success."""
        self._clock = clock
        self._timings, self._draw = timings, timings.draw
        self._throttle = CpuThrottle()
        self._failures = 0
        self._is_warned = False
        self._warned_at = float("-inf")
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread. Log an error if it can't be started."""
        try:
            self._thread.start()
        except RuntimeError as error:
            self._record_start_failure(error)

    def join(self, seconds: float) -> None:
        """Wait at most `seconds` for the thread to end."""
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join(max(0.0, seconds))

    @abstractmethod
    def _run(self) -> None: ...

    @abstractmethod
    def _record_start_failure(self, error: RuntimeError) -> None: ...

    @abstractmethod
    def _follow_once(self) -> None:
        """Run one iteration of the thread's loop. Raise :class:`RequestFailed`."""

    @abstractmethod
    def _record_failure(self, error: RequestFailed) -> None:
        """Record the error of a failed iteration, and pause before the next one."""

    def _follow_until_stopped(self) -> None:
        while not self._stopped.is_set():
            try:
                self._follow_once()
            except RequestFailed as failed:
                self._record_failure(failed)
            except Exception as error:  # No error may end the thread.
                log.debug("switchgear: internal error of the client", exc_info=True)
                self._record_failure(
                    RequestFailed(f"internal error of the client: {type(error).__name__}")
                )

    def _may_warn(self) -> bool:
        """Return True if a warning is due: once per outage and per `WARNING_SECONDS`."""
        now = time.monotonic()
        if self._is_warned or now - self._warned_at < WARNING_SECONDS:
            return False
        self._is_warned, self._warned_at = True, now
        return True

    def _pause_after(
        self, error: RequestFailed, failures: int, hint_seconds: float | None = None
    ) -> None:
        after = parse_retry_after(error.retry_after, self._clock.now())
        self._pause(failure_delay(failures, self._draw, error.status, after, hint_seconds))

    def _pause(self, seconds: float) -> bool:
        """Pause for `seconds`; return False if :meth:`stop` cut the pause short."""
        return not self._stopped.wait(seconds)
