"""State of this process: the served copy, the tokens, and the age of both.

Written by the refresher alone, on the event loop; read by requests, and by Django's threads through
:class:`Status`. Each attribute is replaced as a whole, so a reader never sees half a change.
"""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import formatdate
from functools import lru_cache
from uuid import UUID

from controlplane.core.degradation_levels import READ_ONLY, Cause
from controlplane.core.histograms import Histogram

from .ingest.instance_ledger import InstanceLedger
from .ingest.presence_buffer import PROPAGATION_SECONDS
from .ingest.rate_limiter import ReportRateLimiter
from .memory.compression import Header
from .memory.credentials import TokenTable
from .memory.head import DatabaseHead
from .memory.listeners import CONFIG, SNAPSHOT, Listeners
from .memory.policies import Policies
from .memory.served_copy import Copy

EXACT_SECONDS = 0.25
UNKNOWN_TIME: tuple[Header, ...] = ((b"switchgear-time", b"unknown"),)
BEFORE_ALL = datetime.min.replace(tzinfo=UTC)
ANSWER_SECONDS = (
    0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5,
)  # fmt: skip
"""Upper bounds of the latency histograms, in seconds."""


@dataclass(frozen=True)
class Status:
    """State visible to the rest of the process.

    Version, epoch and age are None before the first snapshot.
    """

    version: int | None
    epoch: UUID | None
    age_seconds: float | None
    database_reachable: bool
    disk: Cause | None = None


class State:
    """The data plane's memory. `monotonic` is a clock in seconds that is never set back."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.copy: Copy | None = None
        self.tokens: TokenTable | None = None
        self.revision = 0
        self.known: frozenset[str] = frozenset()
        self.registrations = -1
        self.policies: Policies | None = None
        self.causes: tuple[Cause, ...] = ()
        self.disk: Cause | None = None
        """Current problem of this process's disk, as of the last check; None if there is none."""
        self.save_errno: int | None = None
        """`errno` of the last attempt to save the signed copy; None if it was saved."""
        self.degradation = -1
        """Revision of `causes`, the degradation causes last read from the database."""
        self.left_epochs: frozenset[UUID] = frozenset()
        self.used_tokens: set[int] = set()
        self.answered = Counter[int]()
        """Number of requests with a credential, by status, since the process started."""
        self.answer_seconds = defaultdict[str, Histogram](lambda: Histogram(ANSWER_SECONDS))
        """Seconds to answer requests that were not held, by kind: the name of the handler."""
        self.served_seconds = Histogram(PROPAGATION_SECONDS)
        """Seconds from a change until this process served it."""
        self.database_reachable = False
        self.database_read_only = False
        self.redis_reachable = True
        self.heard_database = False
        """True once the database has confirmed the served copy in this process."""
        self.listeners = Listeners()
        self.changed = asyncio.Event()
        """Set whenever copy, tokens or known keys were replaced."""
        self.config_changed = asyncio.Event()
        """Set whenever policies or causes were replaced."""
        self._monotonic = monotonic
        self._confirmed_at = 0.0
        self._policies_confirmed_at = 0.0
        self._ahead = time.time() - monotonic()
        self._has_clock = False
        self.ledger = InstanceLedger(self.wall)
        self.throttle = ReportRateLimiter(monotonic)

    def now(self) -> float:
        """Seconds on the monotonic clock."""
        return self._monotonic()

    def unix(self) -> float:
        """Return UNIX seconds by the database's clock, extrapolated with the monotonic clock.

        The local wall clock matters only until the database has answered.
        """
        return self._monotonic() + self._ahead

    def wall(self) -> datetime:
        """Return :meth:`unix` as an aware time in UTC."""
        return datetime.fromtimestamp(self.unix(), UTC)

    def expiry_time(self) -> datetime:
        """Return the time to compare expiries with: :meth:`wall`, or a time before all expiries.

        The latter until the database's time is known: the local clock alone must end no
        engagement.
        """
        return self.wall() if self._has_clock else BEFORE_ALL

    def time_headers(self) -> tuple[Header, ...]:
        """Return the headers `Date` and `Switchgear-Time` by the database's clock.

        Without that time, `Switchgear-Time` is `unknown` and the server adds a local `Date`.
        """
        if not self._has_clock:
            return UNKNOWN_TIME
        return _time_headers(int(self.unix() * 1000))

    def set_clock(self, theirs: datetime, asked_at: float) -> float:
        """Adopt the database's time, read between `asked_at` (monotonic) and now.

        A slow round trip is ignored once the time is known, because it doesn't tell when in between
        the time was read. Return by how many seconds the local clock is ahead.
        """
        now = self._monotonic()
        if now - asked_at <= EXACT_SECONDS or not self._has_clock:
            self._ahead = theirs.timestamp() - (asked_at + now) / 2
            self._has_clock = True
        return time.time() - self.unix()

    def age_seconds(self) -> float:
        """Return the seconds since the served copy was last confirmed by the database."""
        return self._monotonic() - self._confirmed_at

    def policies_age_seconds(self) -> float:
        """Return the seconds since the policies, followed separately, were last confirmed."""
        return self._monotonic() - self._policies_confirmed_at

    def status(self) -> Status:
        copy = self.copy
        if copy is None:
            return Status(None, None, None, self.database_reachable, self.disk)
        publication = copy.publication
        return Status(
            publication.version,
            publication.epoch,
            self.age_seconds(),
            self.database_reachable,
            self.disk,
        )

    def known_causes(self) -> tuple[Cause, ...]:
        """Return the causes that the database reported last, and :meth:`own_causes`."""
        return (*self.causes, *self.own_causes())

    def own_causes(self) -> tuple[Cause, ...]:
        """Return this process's disk problem, and a database that is there but read-only."""
        read_only = READ_ONLY if self.database_reachable and self.database_read_only else None
        return tuple(cause for cause in (read_only, self.disk) if cause is not None)

    def is_lagging(self, head: DatabaseHead) -> bool:
        """Return True for an outdated answer, such as a replica's or a restored backup's.

        Within an epoch neither version nor revision decreases, and an epoch once left is never
        accepted again. Policies are checked separately (:meth:`is_before_policies`), so they can't
        delay a switch.
        """
        if self.copy is None:
            return False
        ours, theirs = self.copy.publication, head.publication
        if theirs.epoch != ours.epoch:
            return theirs.epoch in self.left_epochs
        # Same number, other content: a restored backup has reused the numbers of lost changes.
        given_twice = theirs.version == ours.version and theirs != ours
        fewer = head.revision < self.revision or head.registrations < self.registrations
        return theirs.version < ours.version or given_twice or fewer

    def lacks_copy(self, head: DatabaseHead) -> bool:
        """Return True if the snapshot must be read.

        That includes one of the same version restored from disk, which has no drills.
        """
        copy = self.copy
        return copy is None or copy.is_kept or copy.publication != head.publication

    def lacks_tokens(self, head: DatabaseHead) -> bool:
        """Return True if tokens must be read; those loaded from disk lack owners."""
        is_kept = self.copy is not None and self.copy.is_kept
        return self.tokens is None or is_kept or self.revision != head.revision

    def lacks_known(self, head: DatabaseHead) -> bool:
        return self.registrations != head.registrations

    def lacks(self, head: DatabaseHead) -> bool:
        """Return True if a switch or token that `head` covers is still to be read."""
        return self.lacks_copy(head) or self.lacks_tokens(head) or self.lacks_known(head)

    def lacks_causes(self, head: DatabaseHead) -> bool:
        return self.degradation != head.degradation

    def has_policies(self, head: DatabaseHead) -> bool:
        """Return True if the policies held are exactly those of `head`."""
        known = self.policies
        return (
            known is not None
            and known.epoch == head.publication.epoch
            and (known.version, known.changed_at) == (head.policies, head.policies_at)
        )

    def policies_since(self, head: DatabaseHead) -> int:
        """Return the version of the policies held in the epoch of `head`; -1 without any."""
        known = self.policies
        return -1 if known is None or known.epoch != head.publication.epoch else known.version

    def is_before_policies(self, head: DatabaseHead) -> bool:
        """Return True for an answer with older policies than those held in its epoch."""
        return head.policies < self.policies_since(head)

    def install_copy(self, copy: Copy, confirmed_at: float) -> None:
        """Serve `copy` from now on; the caller has checked that it is not a lagging one."""
        if self.copy is not None and self.copy.publication.epoch != copy.publication.epoch:
            self.left_epochs |= {self.copy.publication.epoch}
            # Numbers of another epoch mean nothing: read again, even if they are equal.
            self.revision, self.registrations, self.degradation = 0, -1, -1
        self._confirmed_at = confirmed_at
        self.copy = copy
        self.changed.set()
        self.listeners.notify(len(copy.body), topic=SNAPSHOT)

    def install_tokens(self, revision: int, tokens: TokenTable) -> None:
        self.revision = revision
        self.tokens = tokens
        self.changed.set()
        self.listeners.notify()

    def install_known(self, registrations: int, known: frozenset[str]) -> None:
        """Replace the ids of all switches that were ever registered or engaged."""
        self.registrations = registrations
        self.known = known
        self.changed.set()
        self.listeners.notify(topic=SNAPSHOT)

    def install_causes(self, revision: int, causes: tuple[Cause, ...]) -> None:
        self.degradation = revision
        self.causes = causes
        self.config_changed.set()

    def install_policies(self, policies: Policies) -> None:
        self.policies = policies
        self.config_changed.set()
        self.listeners.notify(topic=CONFIG)

    def confirm(self, at: float) -> None:
        """Record that the copy matched the database at `at`, on the monotonic clock."""
        self._confirmed_at = at
        self.heard_database = True

    def confirm_policies(self, at: float) -> None:
        """Record that the policies matched the database at `at`, on the monotonic clock."""
        self._policies_confirmed_at = at

    def redis_answers(self, answers: bool) -> None:
        self.redis_reachable = answers


@lru_cache(maxsize=1)
def _time_headers(milliseconds: int) -> tuple[Header, ...]:
    """Return the headers for a UNIX time; cached, because a busy process repeats them."""
    seconds, fraction = divmod(milliseconds, 1000)
    return (_date(seconds), (b"switchgear-time", b"%d.%03d" % (seconds, fraction)))


@lru_cache(maxsize=1)
def _date(seconds: int) -> Header:
    return (b"date", formatdate(seconds, usegmt=True).encode())
