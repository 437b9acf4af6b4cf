"""Counters of good and total events for the console's SLOs. Bounded memory."""

import concurrent.futures
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from operator import index
from typing import Any

from switchgear.decorators import F, wrap
from switchgear.guards import SwitchEngaged
from switchgear.journal import log

MAX_NAMES = 200
"""Maximum number of SLO names that the console accepts from one process."""
MAX_NAME_BYTES = 200  # bytes in UTF-8
MAX_EVENTS = 2**53
"""Limit of the counts of one SLO: the largest integer that every JSON parser keeps exact."""
MAX_WARNINGS = 20

UNCOUNTED_ERRORS = (SwitchEngaged, concurrent.futures.CancelledError)
"""Errors of calls that neither succeeded nor failed."""


class SLI:
    """A counter of events of one SLO in this process. Thread-safe; does no I/O and never raises."""

    def __init__(self, name: str, *, is_reported: bool = True) -> None:
        self.name = name
        self._is_reported = is_reported
        self._is_warned = False
        self.after_fork()

    def good(self) -> None:
        self.add(1, 1)

    def bad(self) -> None:
        self.add(0, 1)

    def add(self, good: int, total: int) -> None:
        """Count `total` more events, of which `good` are good. Invalid counts are only logged."""
        try:
            good, total = index(good), index(total)
            is_valid = 0 <= good <= total
        except TypeError:
            is_valid = False
        if not is_valid:
            if not self._is_warned:
                self._is_warned = True
                log.warning(
                    "switchgear: SLI %s: ignored invalid counts, %.50r good of %.50r events",
                    *(self.name, good, total),
                )
            return
        with self._lock:
            if self._total + total > MAX_EVENTS or not self._is_reported:
                self.dropped += total
            else:
                self._good += good
                self._total += total

    def measure(
        self,
        *,
        within_seconds: float | None = None,
        is_failure: Callable[[BaseException], bool] | None = None,
    ) -> "SLIMeasure":
        """Return a context manager and decorator that counts one event for the code inside.

        The event is bad if the code raises, or takes longer than `within_seconds`. With
        `is_failure`, an exception for which it returns False is treated as a returned value. Raise
        :class:`TypeError` if `within_seconds` is not a number.
        """
        is_number = isinstance(within_seconds, int | float) and not isinstance(within_seconds, bool)
        if within_seconds is not None and not is_number:
            kind = type(within_seconds).__name__
            raise TypeError(f"within_seconds must be a number of seconds, not {kind:.100}")
        return SLIMeasure(self, within_seconds, is_failure)

    def get_counts(self) -> tuple[int, int]:
        """Return good and total events since the process began."""
        with self._lock:
            return self._good, self._total

    def after_fork(self) -> None:
        # Reentrant, since a signal handler may count, too.
        self._lock = threading.RLock()
        self._good = self._total = 0
        self.dropped = 0
        """Events that are not reported."""


class SLIMeasure(AbstractContextManager[None]):
    """A measure that counts one event for each call or block, a bad event if that raises.

    No event is counted for a call that is stopped by a switch or cancelled, or that ends by the
    exit of the process or the closing of a generator. With `within_seconds`, the event of a call or
    block that takes longer is bad, and the measure must not be used by two `with` blocks at once.
    As a decorator it suits functions, coroutine functions and generators, and keeps their
    signature.
    """

    def __init__(
        self,
        sli: SLI,
        within_seconds: float | None = None,
        is_failure: Callable[[BaseException], bool] | None = None,
    ) -> None:
        self._sli = sli
        self._within_seconds = within_seconds
        self._is_failure = is_failure
        self._began = 0.0

    def __call__(self, function: F) -> F:
        arguments = (self._sli, self._within_seconds, self._is_failure)
        return wrap(function, lambda _args, _kwargs: SLIMeasure(*arguments))

    def __enter__(self) -> None:
        self._began = time.monotonic()

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if error is not None:
            if not is_counted(error):
                return
            if self._is_bad(error):
                self._sli.bad()
                return
        limit = self._within_seconds
        if limit is not None and time.monotonic() - self._began > limit:
            self._sli.bad()
        else:
            self._sli.good()

    def _is_bad(self, error: BaseException) -> bool:
        if self._is_failure is None:
            return True
        if isinstance(error, BaseExceptionGroup):
            return any(self._is_bad(each) for each in error.exceptions if is_counted(each))
        try:
            return bool(self._is_failure(error))
        except Exception:  # The caller must get the error of the call, not this one.
            log.exception("switchgear: SLI %s: is_failure raised", self._sli.name)
            return True


def is_counted(error: BaseException) -> bool:
    """Return True if the error of a call counts as an event; for a group, if any member does."""
    if isinstance(error, BaseExceptionGroup):
        return any(is_counted(each) for each in error.exceptions)
    return isinstance(error, Exception) and not isinstance(error, UNCOUNTED_ERRORS)


class Indicators:
    """All SLIs of a client, by the names of their SLOs. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._slis: dict[str, SLI] = {}
        self._spare = SLI("(none)", is_reported=False)
        """The SLI for names that are invalid or beyond the limit."""
        self._warnings = 0

    def get(self, name: str) -> SLI:
        """Return the SLI of that name.

        For an invalid name, or one beyond the limit, log a warning and return an SLI that is not
        reported; its events count as `dropped`.
        """
        found = self._slis.get(name) if isinstance(name, str) else None
        return self._create(name) if found is None else found

    @property
    def dropped(self) -> int:
        """Number of events that are not reported."""
        with self._lock:
            return sum(sli.dropped for sli in (self._spare, *self._slis.values()))

    def get_counts(self) -> dict[str, tuple[int, int]]:
        """Return good and total events since the process began, by name."""
        with self._lock:
            return {name: sli.get_counts() for name, sli in self._slis.items()}

    def after_fork(self) -> None:
        self._lock = threading.RLock()
        for sli in (self._spare, *self._slis.values()):
            sli.after_fork()

    def _create(self, name: str) -> SLI:
        is_name = isinstance(name, str) and name.isprintable()
        is_valid = is_name and 0 < len(name.encode()) <= MAX_NAME_BYTES
        why = "" if is_valid else "not a valid SLO name"
        with self._lock:
            if not why and (name in self._slis or len(self._slis) < MAX_NAMES):
                return self._slis.setdefault(name, SLI(name))
            if self._warnings < MAX_WARNINGS:
                self._warnings += 1
                why = why or f"there are already {MAX_NAMES} SLIs"
                log.warning("switchgear: SLI %.100r is not reported: %s", name, why)
            return self._spare
