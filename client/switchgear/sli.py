"""Good events of all events, counted here and reported to the console's SLOs. Bounded memory."""

import concurrent.futures
import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from operator import index
from types import TracebackType
from typing import Any, TypeVar

from switchgear.guards import SwitchEngaged
from switchgear.wrapping import wrapped

MAX_NAMES = 200
"""As many as the console counts of one process."""
MAX_NAME_BYTES = 200  # bytes in UTF-8
MAX_EVENTS = 2**53
"""Where the counts of one SLO stop: what every reader of JSON can hold."""
MAX_COMPLAINTS = 20

NO_EVENTS = (SwitchEngaged, concurrent.futures.CancelledError)
"""What ends a call that nobody was served by, and nobody failed at."""

F = TypeVar("F", bound=Callable[..., Any])

log = logging.getLogger("switchgear")


class SLI:
    """Counts the events of one SLO: they only grow, from nought in each process.

    Nothing is raised into the service, and no call waits for I/O. Safe to use from any thread.
    """

    def __init__(self, name: str, *, is_reported: bool = True) -> None:
        self.name = name
        self._is_reported = is_reported
        self._complained = False
        self.after_fork()

    def good(self) -> None:
        """One good event."""
        self.add(1, 1)

    def bad(self) -> None:
        """One event that was not good."""
        self.add(0, 1)

    def add(self, good: int, total: int) -> None:
        """`good` events of `total` more. What can't be is logged once, and left out."""
        try:
            good, total = index(good), index(total)
            sane = 0 <= good <= total
        except TypeError:
            sane = False
        if not sane:
            self._complain(good, total)
            return
        with self._lock:
            if self._total + total > MAX_EVENTS or not self._is_reported:
                self.left_out += total
            else:
                self._good += good
                self._total += total

    def measure(self, *, within_seconds: float | None = None) -> "Measure":
        """Return what counts the code inside, as `with sli.measure(): …` or as a decorator. Raises
        :class:`TypeError` if `within_seconds` is not a number."""
        is_number = isinstance(within_seconds, int | float) and not isinstance(within_seconds, bool)
        if within_seconds is not None and not is_number:
            kind = type(within_seconds).__name__
            raise TypeError(f"within_seconds must be a number of seconds, not {kind:.100}")
        return Measure(self, within_seconds)

    def counted(self) -> tuple[int, int]:
        """Good events and all events since the process began."""
        with self._lock:
            return self._good, self._total

    def after_fork(self) -> None:
        """In a child, count from nought: what was counted is the parent's, as is the lock."""
        # One that its holder may take again: a signal's handler may count, too.
        self._lock = threading.RLock()
        self._good = self._total = 0
        self.left_out = 0
        """Events that nobody will hear of."""

    def _complain(self, good: object, total: object) -> None:
        if not self._complained:
            self._complained = True
            log.warning(
                "switchgear: SLI %s: %.50r good of %.50r events can't be, and is left out",
                *(self.name, good, total),
            )


class Measure(AbstractContextManager[None]):
    """One event for each time that it is gone through; a bad one if an exception comes out.

    No event at all: a call that a switch stopped, one that was cancelled, and a process or a
    generator that is ended. With `within_seconds` it is bad to take longer than that; make one for
    each `with` then. As a decorator it suits functions, coroutine functions and generators, and
    leaves their signature as it is.
    """

    def __init__(self, sli: SLI, within_seconds: float | None = None) -> None:
        self._sli = sli
        self._within_seconds = within_seconds
        self._began = 0.0

    def __call__(self, function: F) -> F:
        """`function`, whose calls are measured."""
        return wrapped(function, self._around)

    def __enter__(self) -> None:
        self._began = time.monotonic()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            if is_failure(error):
                self._sli.bad()
            return
        limit = self._within_seconds
        if limit is not None and time.monotonic() - self._began > limit:
            self._sli.bad()
        else:
            self._sli.good()

    def _around(self, _args: tuple[Any, ...], _kwargs: Mapping[str, Any]) -> "Measure":
        return Measure(self._sli, self._within_seconds)


def is_failure(error: BaseException) -> bool:
    """Whether who was to be served was not, and something failed; of a group, any of it."""
    if isinstance(error, BaseExceptionGroup):
        return any(is_failure(one) for one in error.exceptions)
    return isinstance(error, Exception) and not isinstance(error, NO_EVENTS)


class Indicators:
    """All SLIs of a client, by the names of their SLOs. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._slis: dict[str, SLI] = {}
        self._spare = SLI("(none)", is_reported=False)
        """For whom there is no room, or who has no name that could be reported."""
        self._complaints = 0

    def get(self, name: str) -> SLI:
        """The one of that name. For one too many, or no name, one that is not reported: that is
        logged, and its events are in `dropped`."""
        found = self._slis.get(name) if isinstance(name, str) else None
        return self._new(name) if found is None else found

    @property
    def dropped(self) -> int:
        """Events that nobody will hear of."""
        with self._lock:
            return sum(sli.left_out for sli in (self._spare, *self._slis.values()))

    def counted(self) -> dict[str, tuple[int, int]]:
        """Good events and all events since the process began, by name."""
        with self._lock:
            return {name: sli.counted() for name, sli in self._slis.items()}

    def after_fork(self) -> None:
        """In a child: who holds an SLI goes on with it, from nought."""
        self._lock = threading.RLock()
        for sli in (self._spare, *self._slis.values()):
            sli.after_fork()

    def _new(self, name: str) -> SLI:
        why = "" if _is_name(name) else "that is no name of an SLO"
        with self._lock:
            if not why and (name in self._slis or len(self._slis) < MAX_NAMES):
                return self._slis.setdefault(name, SLI(name))
            if self._complaints < MAX_COMPLAINTS:
                self._complaints += 1
                why = why or f"there are {MAX_NAMES} others"
                log.warning("switchgear: SLI %.100r is not reported: %s", name, why)
            return self._spare


def _is_name(name: object) -> bool:
    return isinstance(name, str) and name.isprintable() and 0 < len(name.encode()) <= MAX_NAME_BYTES
