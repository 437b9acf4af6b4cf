"""Settings and counters of a consumer."""

import os
import random
import secrets
import socket
import threading
from dataclasses import dataclass, field

from switchgear.dlq.names import Names
from switchgear.refusals import CircuitOpen, refusal_in

DEFAULT_NAMES = Names()
MAX_PAUSE_SECONDS = 60.0


class WorkersDied(Exception):
    """Error of a message that several workers received and none finished; it is not retried."""

    __module__ = "switchgear.dlq"


@dataclass
class Counts:
    """Counters of a consumer since its creation.

    `taken` counts messages that another worker reclaimed meanwhile, `vanished` messages deleted
    from the stream before they were handled, `refused` calls rejected by a switch or breaker.
    """

    handled: int = 0
    failed_attempts: int = 0
    dead_lettered: int = 0
    taken: int = 0
    vanished: int = 0
    refused: int = 0


@dataclass(kw_only=True, eq=False)
class Settings:
    """Settings of a consumer.

    A message is tried `attempts` times, with full-jitter pauses of up to `backoff_seconds`, doubled
    after each attempt, 60 seconds at most. Exceptions in `permanent` are not retried. A refusal (a
    switch is engaged, a breaker is open) does not count as an attempt: the message waits
    `refused_seconds`, or as long as the breaker is open.

    `batch` messages are read at once, and held for `held_seconds` at most. Messages of other
    workers are reclaimed after `idle_seconds`, and become dead letters without an attempt after
    `max_deliveries` deliveries.

    A new group starts at `start`: `0` for all messages, `$` for new ones. `dead_stream` overrides
    `names`. Raises :class:`ValueError` for invalid values.
    """

    stream: str
    group: str
    consumer: str = field(
        default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
    )
    names: Names = DEFAULT_NAMES
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
            raise ValueError("a stream can't be its own stream of dead letters")
        if not (self.group and self.consumer):
            raise ValueError("group and consumer must not be empty")
        if min(self.attempts, self.max_deliveries, self.batch) < 1:
            raise ValueError("attempts, max_deliveries and batch must be at least 1")
        if min(self.idle_seconds, self.wait_seconds, self.refused_seconds) <= 0:
            raise ValueError("idle_seconds, wait_seconds and refused_seconds must be more than 0")
        if self.backoff_seconds < 0:
            raise ValueError("backoff_seconds must be at least 0")

    @property
    def idle_ms(self) -> int:
        return max(1, round(self.idle_seconds * 1000))

    def stop(self) -> None:
        """Make the consumer's `run()` end after the current message.

        Safe in signal handlers and other threads. Unhandled messages of the current batch are
        released to other workers.
        """
        self._stopped = True  # Without a lock, which a signal handler could deadlock on.

    def refused_pause(self, error: Exception) -> float | None:
        """Return the seconds to wait if `error` is a refusal of the handler; None if a failure."""
        refusal = None if isinstance(error, self.permanent) else refusal_in(error)
        if refusal is None:
            return None
        retry_after = refusal.retry_after if isinstance(refusal, CircuitOpen) else None
        return min(retry_after or self.refused_seconds, MAX_PAUSE_SECONDS)

    @property
    def is_stopped(self) -> bool:
        return self._stopped


def backoff_seconds(failures: int, base: float) -> float:
    """Return a random pause after `failures` failures, by full jitter.

    The bound is `base` seconds, doubled after each failure, up to `MAX_PAUSE_SECONDS`.
    """
    bound = min(MAX_PAUSE_SECONDS, base * 2.0 ** min(failures - 1, 30))
    return random.uniform(0.0, bound)  # noqa: S311 - not a secret


class ClaimedMessages:
    """The messages that a consumer holds, each with the time it was received. Thread-safe."""

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._since: dict[str, float] = {}
        self._lock = threading.Lock()

    def add(self, ids: list[str], now: float) -> None:
        with self._lock:
            self._since.update(dict.fromkeys(ids, now))

    def renew(self, now: float) -> None:
        """Restart the holding time of all messages at `now`, as they wait for a refused handler."""
        with self._lock:
            self._since = dict.fromkeys(self._since, now)

    def drop(self, entry_id: str) -> None:
        with self._lock:
            self._since.pop(entry_id, None)

    def drop_all(self) -> list[str]:
        with self._lock:
            ids, self._since = list(self._since), {}
        return ids

    def to_extend(self, now: float) -> list[str]:
        """Return the ids of messages held for less than the limit, to extend their claims."""
        with self._lock:
            return [entry_id for entry_id, at in self._since.items() if now - at < self._longest]
