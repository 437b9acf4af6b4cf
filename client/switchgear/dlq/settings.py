"""What a consumer is told, and what it counts."""

import os
import random
import secrets
import socket
import threading
from dataclasses import dataclass, field

from switchgear.dlq.names import Names
from switchgear.refusals import CircuitOpen, refusal_in

AS_USUAL = Names()
MAX_PAUSE_SECONDS = 60.0


class WorkersDied(Exception):
    """The error of a message that was given to one worker after the other, none of whom came to an
    end with it: it is not tried again."""

    __module__ = "switchgear.dlq"


@dataclass
class Counts:
    """The counters of a consumer since it was created. `taken` are messages that another worker
    reclaimed meanwhile, `vanished` those that were deleted from the stream before they were
    handled. `refused` counts refusals of the handler."""

    handled: int = 0
    failed_attempts: int = 0
    dead_lettered: int = 0
    taken: int = 0
    vanished: int = 0
    refused: int = 0


def _own_name() -> str:
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"


@dataclass(kw_only=True, eq=False)
class Settings:
    """How a stream is read, and when a message has failed for good.

    A message is tried `attempts` times, with pauses of full jitter between: up to
    `backoff_seconds`, twice that, four times that and so on, a minute at most. Exceptions in
    `permanent` are not tried again. If a handler is refused (its switch is engaged, its breaker is
    open), that is not an attempt: the message waits `refused_seconds`, or as long as the breaker
    says, as often as necessary. What a worker left behind is taken over when it has been idle for
    `idle_seconds`, and given up without being tried once it was delivered `max_deliveries` times.
    A worker that is at a message keeps it for `held_seconds` at most. `batch` messages are read at
    once. A new group begins with the stream's `start`: `0` is all there is, `$` what comes from now
    on. `dead_stream` is for names that no pattern describes.

    Raises :class:`ValueError` for what can't be.
    """

    stream: str
    group: str
    consumer: str = field(default_factory=_own_name)
    names: Names = AS_USUAL
    dead_stream: str = ""
    attempts: int = 3
    backoff_seconds: float = 2.0
    permanent: tuple[type[Exception], ...] = ()
    refused_seconds: float = 5.0
    idle_seconds: float = 300.0
    held_seconds: float = 3600.0
    max_deliveries: int = 3
    batch: int = 10
    wait_seconds: float = 1.0
    start: str = "0"
    counts: Counts = field(default_factory=Counts, init=False)
    _stopped: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        self.dead_stream = self.dead_stream or self.names.dead_of(self.stream)
        if self.dead_stream == self.stream:
            raise ValueError("a stream can't take its own dead letters")
        if not (self.group and self.consumer):
            raise ValueError("group and consumer need a name")
        if min(self.attempts, self.max_deliveries, self.batch) < 1:
            raise ValueError("attempts, max_deliveries and batch are 1 or more")
        if min(self.idle_seconds, self.wait_seconds, self.refused_seconds) <= 0:
            raise ValueError("idle_seconds, wait_seconds and refused_seconds must be more than 0")
        if self.backoff_seconds < 0:
            raise ValueError("backoff_seconds must be at least 0")

    @property
    def idle_ms(self) -> int:
        return max(1, round(self.idle_seconds * 1000))

    def stop(self) -> None:
        """Have `run()` come to an end after the message at hand. Safe in a signal handler and from
        another thread; what was read and not handled is free for others at once."""
        self._stopped = True  # No lock that a signal handler could find taken.

    def refused_pause(self, error: Exception) -> float | None:
        """Return the seconds to wait if the handler was refused, None if it failed."""
        refusal = None if isinstance(error, self.permanent) else refusal_in(error)
        if refusal is None:
            return None
        told = refusal.retry_after if isinstance(refusal, CircuitOpen) else None
        return min(told or self.refused_seconds, MAX_PAUSE_SECONDS)

    @property
    def is_stopped(self) -> bool:
        return self._stopped


def jittered(failures: int, base: float) -> float:
    """Seconds to wait after so many failures: full jitter below a doubling bound."""
    bound = min(MAX_PAUSE_SECONDS, base * 2.0 ** min(failures - 1, 30))
    return random.uniform(0.0, bound)  # noqa: S311 - not a secret


class InHand:
    """The messages that a consumer is at, since when; for the one who holds them meanwhile."""

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._since: dict[str, float] = {}
        self._lock = threading.Lock()

    def take(self, ids: list[str], now: float) -> None:
        with self._lock:
            self._since.update(dict.fromkeys(ids, now))

    def renew(self, now: float) -> None:
        """Hold all of them from now on: they wait for no fault of theirs."""
        with self._lock:
            self._since = dict.fromkeys(self._since, now)

    def drop(self, entry_id: str) -> None:
        with self._lock:
            self._since.pop(entry_id, None)

    def drop_all(self) -> list[str]:
        with self._lock:
            ids, self._since = list(self._since), {}
        return ids

    def held(self, now: float) -> list[str]:
        """Those still to be held; what has taken too long is left to others."""
        with self._lock:
            return [one for one, at in self._since.items() if now - at < self._longest]
