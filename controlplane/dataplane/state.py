"""State of the data plane in this process: snapshot, tokens, policies, and their age.

The refresher and the config follower write it on the event loop; requests read it, and Django's
threads read :class:`PlaneStatus`. Each attribute is replaced as a whole, so a reader never sees a
partial change.
"""

import asyncio
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import formatdate
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any
from uuid import UUID

from controlplane.core.degradation_levels import CHANGES_LOST, CRITICAL, READ_ONLY, Cause
from controlplane.core.signatures import SigningKey, sign
from controlplane.dataplane.histograms import Histogram
from switches.emergency.orders import Order
from switches.snapshot import OrderIds

from .ingest.instance_ledger import InstanceLedger
from .ingest.ledger import Ledger
from .ingest.presence_buffer import PROPAGATION_SECONDS
from .ingest.rate_limiter import ReportRateLimiter
from .memory.callers import TokenCallers
from .memory.compression import Header
from .memory.credentials import CodeTable, TokenTable
from .memory.listeners import CONFIG, RELAY, SNAPSHOT, Listeners
from .memory.merged_copy import merge_orders
from .memory.order_set import ClosedOrders, OrderSet
from .memory.ownership import NO_OWNERS, OwnershipTable
from .memory.policies import Policies
from .memory.served_copy import Copy
from .postgres.database import DatabaseHead

EXACT_SECONDS = 0.25
MAX_CHECKED = 5000
MAX_SERVED_ORDERS = 1000
UNKNOWN_TIME: tuple[Header, ...] = ((b"switchgear-time", b"unknown"),)
BEFORE_ALL = datetime.min.replace(tzinfo=UTC)
ANSWER_SECONDS = (
    0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5,
)  # fmt: skip


@dataclass(frozen=True)
class PlaneStatus:
    """The data plane's status for other parts of the process.

    `version`, `epoch` and `age_seconds` are None before a snapshot is loaded.
    """

    version: int | None
    epoch: UUID | None
    age_seconds: float | None
    database_reachable: bool
    disk: Cause | None = None


class State:
    """All that the data plane holds in memory; `monotonic` returns monotonic seconds."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.copy: Copy | None = None
        """The served copy: `published` and the open emergency orders."""
        self.published: Copy | None = None
        """The copy of the database's snapshot, read or restored from disk."""
        self.signing_keys: Sequence[SigningKey] = ()
        """Keys that sign what is published; none on relays, whose copies are signed upstream."""
        self.public_keys: Sequence[Mapping[str, Any]] = ()
        """The public keys, as `GET /api/v1/keys` lists them."""
        self.signing: Cause | None = None
        """Current problem of the signing keys; None without one."""
        self.orders = OrderSet()
        self.must_reread = False
        """True if the snapshot must be read again, though its version is the served one."""
        self.served_orders = deque[str](maxlen=MAX_SERVED_ORDERS)
        """:attr:`OrderSet.hash` of the latest copies that were served."""
        self.tokens: TokenTable | None = None
        self.codes: CodeTable = {}
        self.owners: OwnershipTable = NO_OWNERS
        self.callers = TokenCallers()
        self.revision = 0
        self.known: frozenset[str] = frozenset()
        self.registrations = -1
        self.checked: frozenset[str] = frozenset()
        """Switches of which instances reported checks to this process, at most `MAX_CHECKED`."""
        self.policies: Policies | None = None
        self.causes: tuple[Cause, ...] = ()
        self.disk: Cause | None = None
        """Current problem of the data directory's disk; None without one."""
        self.peers: Cause | None = None
        """Data planes that this one can't reach; None if it reaches all."""
        self.publishing: Cause | None = None
        """The failure to publish the signed snapshot as a file; None if it succeeds."""
        self.has_file: bool | None = None
        """True if the published file is up to date; None if it is not configured, or at start."""
        self.file_updates = Counter[str]()
        """Number of updates of the published file, by outcome: write, keep, fail."""
        self.is_relay = False
        """True if an upstream takes the place of the database."""
        self.upstream: Cause | None = None
        """Problem of a relay with its upstream; None without one, and on data planes."""
        self.bundles = Counter[str]()
        """Number of bundles from the upstream of a relay: applied, invalid or older."""
        self.peer_statuses = Counter[str]()
        """Number of other data planes by status: reachable, unreachable, older."""
        self.exchanges = Counter[str]()
        """Number of exchanges of orders with other data planes, by outcome."""
        self.orders_received = 0
        """Number of emergency orders that came from other data planes."""
        self.save_errno: int | None = None
        """`errno` of the last attempt to save the signed copy; None if it succeeded."""
        self.degradation = -1
        """Revision of `causes`, the degradation causes last read from the database."""
        self.left_epochs: frozenset[UUID] = frozenset()
        self.used_tokens: set[int] = set()
        self.answered = Counter[int]()
        """Number of requests with a required scope, by status, since the process started."""
        self.order_answers = Counter[int]()
        """Number of requests to accept an emergency order, by status of the answer."""
        self.code_checks = Counter[str]()
        """Number of checks of emergency codes, by result: `correct`, `wrong` or `limited`."""
        self.answer_seconds = defaultdict[str, Histogram](lambda: Histogram(ANSWER_SECONDS))
        """Duration of requests that were not held, by name of the handler."""
        self.served_seconds = Histogram(PROPAGATION_SECONDS)
        """Seconds from a change until this process served it."""
        self.database_reachable = False
        self.database_read_only = False
        self.is_ahead = False
        """True while the database accepts changes and lacks what this process serves."""
        self.redis_reachable = True
        self.heard_database = False
        """True once the database has confirmed the served copy in this process."""
        self.listeners = Listeners()
        self.cors_origins: frozenset[bytes] = frozenset()
        """Origins whose pages may evaluate switches."""
        self.changed = asyncio.Event()
        """Set whenever snapshot, tokens or known switches were replaced."""
        self.bundle_changes = 0
        """Number of changes of what relays get."""
        self.relay_streams = 0
        """Number of relays that follow this process."""
        self.config_changed = asyncio.Event()
        """Set whenever policies or causes were replaced."""
        self._monotonic = monotonic
        self._confirmed_at = 0.0
        self._policies_confirmed_at = 0.0
        self._ahead = time.time() - monotonic()
        self._has_clock = False
        self.ledger: Ledger = InstanceLedger(self.wall)
        self.throttle = ReportRateLimiter(monotonic)

    def now(self) -> float:
        return self._monotonic()

    def unix(self) -> float:
        """Return UNIX seconds by the database's clock; by the local clock until that is known."""
        return self._monotonic() + self._ahead

    def wall(self) -> datetime:
        return datetime.fromtimestamp(self.unix(), UTC)

    def expiry_time(self) -> datetime:
        """Return the time with which expiries are compared: the database's time.

        Until the database has sent its time, return a time before all expiries, so that a wrong
        local clock can't end an engagement.
        """
        return self.wall() if self._has_clock else BEFORE_ALL

    def clock_seconds(self) -> float | None:
        """Return UNIX seconds by the database's clock; None until that is known."""
        return self.unix() if self._has_clock else None

    def time_headers(self) -> tuple[Header, ...]:
        """Return the headers `Date` and `Switchgear-Time` by the database's clock.

        Until the database has sent its time, return only `Switchgear-Time: unknown`; the server
        then adds a `Date` by the local clock.
        """
        if not self._has_clock:
            return UNKNOWN_TIME
        return _time_headers(int(self.unix() * 1000))

    def set_clock(self, theirs: datetime, asked_at: float) -> float:
        """Adopt the database's time; return the seconds by which the local clock is ahead.

        `theirs` was read between `asked_at` (monotonic) and now. After the first time, slow round
        trips are ignored, because they are inexact.
        """
        now = self._monotonic()
        if now - asked_at <= EXACT_SECONDS or not self._has_clock:
            self._ahead = theirs.timestamp() - (asked_at + now) / 2
            self._has_clock = True
        return time.time() - self.unix()

    def age_seconds(self) -> float:
        """Return the seconds since the database last confirmed the snapshot."""
        return self._monotonic() - self._confirmed_at

    def policies_age_seconds(self) -> float:
        """Return the seconds since the database last confirmed the policies."""
        return self._monotonic() - self._policies_confirmed_at

    def status(self) -> PlaneStatus:
        if self.copy is None:
            return PlaneStatus(None, None, None, self.database_reachable, self.disk)
        snapshot, age = self.copy.publication, self.age_seconds()
        return PlaneStatus(
            snapshot.version, snapshot.epoch, age, self.database_reachable, self.disk
        )

    def known_causes(self) -> tuple[Cause, ...]:
        """Return the degradation causes read from the database, and :meth:`own_causes`."""
        return (*self.causes, *self.own_causes())

    def own_causes(self) -> tuple[Cause, ...]:
        """Return this process's own degradation causes.

        These are open emergency orders, problems of the disk, the signing keys, the published file
        and a relay's upstream, a read-only database, one that has lost changes, and unreachable
        data planes.
        """
        read_only = READ_ONLY if self.database_reachable and self.database_read_only else None
        lost = CHANGES_LOST if self.database_reachable and self.is_ahead else None
        orders = describe_open_orders(len(self.orders.open))
        own = (self.disk, self.signing, self.publishing, self.peers)
        causes = (self.upstream, read_only, lost, *own, orders)
        return tuple(cause for cause in causes if cause is not None)

    def assumed_reachable(self) -> tuple[bool, bool]:
        """Return whether PostgreSQL and Redis respond; True for both while a relay can't know."""
        if self.upstream is not None:
            return True, True
        return self.database_reachable, self.redis_reachable

    def is_lagging(self, head: DatabaseHead) -> bool:
        """Return True if `head` is outdated, as from a lagging replica or a restored backup.

        Within an epoch, the versions and numbers in a head never decrease, and an epoch that was
        left never returns. Policies are compared separately (:meth:`is_before_policies`), so that
        they can't delay a switch.
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
        """Return True if the snapshot must be read: it is outdated, or was restored from disk."""
        copy = self.copy
        return (
            copy is None or copy.is_kept or self.must_reread or copy.publication != head.publication
        )

    def lacks_tokens(self, head: DatabaseHead) -> bool:
        """Return True if tokens must be read: they are outdated, or were restored from disk."""
        is_kept = self.copy is not None and self.copy.is_kept
        return self.tokens is None or is_kept or self.revision != head.revision

    def lacks(self, head: DatabaseHead) -> bool:
        """Return True if the snapshot, the tokens or the known switches must be read."""
        return (
            self.lacks_copy(head)
            or self.lacks_tokens(head)
            or self.registrations != head.registrations
        )

    def has_policies(self, head: DatabaseHead) -> bool:
        """Return True if the loaded policies are exactly those of `head`."""
        known, theirs = self.policies, (head.publication.epoch, head.policies, head.policies_at)
        return known is not None and (known.epoch, known.version, known.changed_at) == theirs

    def policies_since(self, head: DatabaseHead) -> int:
        """Return the version of the loaded policies; -1 if their epoch is not that of `head`."""
        known = self.policies
        return -1 if known is None or known.epoch != head.publication.epoch else known.version

    def is_before_policies(self, head: DatabaseHead) -> bool:
        """Return True if `head` has older policies than those loaded, in the same epoch."""
        return head.policies < self.policies_since(head)

    def install_copy(
        self, copy: Copy, confirmed_at: float, closed: ClosedOrders | None = None
    ) -> None:
        """Serve `copy` from now on. The caller must have checked that it is not outdated.

        `closed` are the emergency orders that the database had closed in this version, None if
        unknown. Orders and copy are replaced together, so that no switch is released in between.
        """
        before = self.published
        if before is not None and before.publication.epoch != copy.publication.epoch:
            self.left_epochs |= {before.publication.epoch}
            # Numbers of another epoch mean nothing: read again, even if they are equal.
            self.revision, self.registrations, self.degradation = 0, -1, -1
            closed = closed or {}
        if closed is not None:
            self.orders = self.orders.close(closed, partial(_is_engaged, before))
        self._confirmed_at = confirmed_at
        self.published = self._sign(copy)
        self._serve()

    def install_keys(
        self, signing_keys: Sequence[SigningKey], public_keys: Sequence[Mapping[str, Any]]
    ) -> None:
        """Sign what is published with these keys from now on, and the present copy again."""
        self.signing_keys, self.public_keys = signing_keys, public_keys
        if self.published is not None:
            self.published = self._sign(self.published)
            # Clients have the content already: only relays are notified.
            self.copy = merge_orders(self.published, self.orders, self.wall(), self.copy)
        self._note_bundle_change()

    def list_closed(self, closed: ClosedOrders) -> OrderIds:
        """Return the ids of orders no longer in force, for a copy that was read with `closed`."""
        orders = self.orders.close(closed, partial(_is_engaged, self.published))
        return OrderSet(closed=orders.closed, settled=orders.settled).listed_ids(self.wall())

    def measure_propagation(self, copy: Copy) -> None:
        """Observe the seconds from the publication of `copy` until now; skip the first copy."""
        before = self.copy
        if before is None or before.is_kept or not self.heard_database:
            return
        if before.epoch == copy.epoch and before.publication.version < copy.publication.version:
            since = (self.wall() - copy.publication.published_at).total_seconds()
            self.served_seconds.observe(max(0.0, since))

    def add_orders(self, orders: Iterable[Order]) -> bool:
        """Serve these emergency orders, too; return False if all of them were known."""
        known = self.orders
        self.orders = known.add(orders)
        if self.orders is known:
            return False
        self._serve()
        return True

    def forget_orders(self, ids: Iterable[UUID]) -> None:
        """Forget emergency orders that the database closed long ago."""
        self.orders = self.orders.forget(ids)

    def _sign(self, copy: Copy) -> Copy:
        """Return `copy`, signed; as it is without a key, like a copy that was signed upstream."""
        if not self.signing_keys:
            return copy
        return copy.with_signature(sign(copy.body, self.signing_keys))

    def _serve(self) -> None:
        """Serve the published copy and the open orders, and answer held requests."""
        self.changed.set()
        if self.published is None:
            return  # Tokens and switches are not loaded either.
        self.copy = merge_orders(self.published, self.orders, self.wall(), self.copy)
        self.served_orders.append(self.orders.hash)
        self.listeners.notify(len(self.copy.body), topic=SNAPSHOT)
        self._note_bundle_change()

    def _note_bundle_change(self) -> None:
        self.bundle_changes += 1
        self.listeners.notify(topic=RELAY)

    def install_tokens(
        self,
        revision: int,
        tokens: TokenTable,
        codes: CodeTable = MappingProxyType({}),
        owners: OwnershipTable = NO_OWNERS,
    ) -> None:
        self.revision = revision
        self.tokens = tokens
        self.codes = codes
        self.owners = owners
        self.callers.install(owners)
        self.changed.set()
        self.bundle_changes += 1
        self.listeners.notify()

    def install_known(self, registrations: int, known: frozenset[str]) -> None:
        self.registrations = registrations
        self.known = known
        self.changed.set()
        self.listeners.notify(topic=SNAPSHOT)
        self._note_bundle_change()

    def add_checked(self, switches: Iterable[str]) -> None:
        """Remember switches of which an instance reported checks, to suggest them to people."""
        news = [each for each in switches if each not in self.checked]
        if news and len(self.checked) < MAX_CHECKED:
            self.checked = self.checked.union(news[: MAX_CHECKED - len(self.checked)])

    def install_causes(self, revision: int, causes: tuple[Cause, ...]) -> None:
        self.degradation = revision
        self.causes = causes
        self.config_changed.set()
        self._note_bundle_change()

    def install_policies(self, policies: Policies) -> None:
        self.policies = policies
        self.config_changed.set()
        self.listeners.notify(topic=CONFIG)
        self._note_bundle_change()

    def confirm(self, at: float) -> None:
        """Record that the database confirmed the snapshot at `at` (monotonic)."""
        self._confirmed_at = at
        self.heard_database = True

    def confirm_policies(self, at: float) -> None:
        """Record that the database confirmed the policies at `at` (monotonic)."""
        self._policies_confirmed_at = at

    def set_redis_reachable(self, is_reachable: bool) -> None:
        self.redis_reachable = is_reachable


def describe_open_orders(number: int) -> Cause | None:
    """Return the degradation of `number` open emergency orders; None without any."""
    if not number:
        return None
    text = (
        "1 emergency order blocks its switch, and the console has not taken it over yet."
        if number == 1
        else f"{number:,} emergency orders block their switches, and the console has not taken them"
        " over yet."
    )
    return Cause(
        CRITICAL,
        "emergency orders",
        text,
        fails=("Calls that these switches block",),
        works=("Withdrawing emergency orders on data planes",),
    )


def _is_engaged(copy: Copy | None, switch: str) -> bool:
    entry = None if copy is None else copy.entries.get(switch)
    return entry is not None and entry.state == "engaged"


@lru_cache(maxsize=1)
def _time_headers(milliseconds: int) -> tuple[Header, ...]:
    """Return the time headers for UNIX milliseconds, cached for requests in one millisecond."""
    seconds, fraction = divmod(milliseconds, 1000)
    return (_date_header(seconds), (b"switchgear-time", b"%d.%03d" % (seconds, fraction)))


@lru_cache(maxsize=1)
def _date_header(seconds: int) -> Header:
    return (b"date", formatdate(seconds, usegmt=True).encode())
