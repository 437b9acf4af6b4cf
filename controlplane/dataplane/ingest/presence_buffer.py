"""Buffer of instances' presence and applied versions, until they are written. Memory only.

Every poll calls :meth:`PresenceBuffer.record_presence`, so that method must take microseconds and
never raise.
"""

import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from controlplane.dataplane.histograms import Histogram
from controlplane.dataplane.memory.instance_names import service_of
from controlplane.dataplane.memory.served_copy import Copy
from switches.snapshot import SnapshotVersion

from .applied_orders import AppliedOrders
from .instance_sql import Ack, Presence

HEARTBEAT_SECONDS = 10.0
PROPAGATION_SECONDS = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
)  # fmt: skip
MAX_INSTANCES = 20_000
MAX_ACKS = 50_000
MAX_DIGITS = 18
_NEVER = float("-inf")
Notes = tuple[list[Presence], list[Ack]]
_MARK = re.compile(
    rb'"?(?:([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})\.)?([0-9]{1,%d})'
    rb'(?:-([0-9a-f]{8}))?(?:-gzip)?"?' % MAX_DIGITS
)
"""Matches `<epoch>.<version>` or a bare version, with a hash of orders, also within an ETag."""


@dataclass(slots=True, eq=False)
class PresenceNote:
    """The latest poll of an instance, and the snapshot version that it applied.

    `mark` is the version as the instance sent it; `epoch` and `version` are its parsed parts. If
    `mark` has no epoch, it gets the epoch that was served when it was first sent. `publication` is
    the version that this process served when the instance last sent `mark`. `orders_hash`
    identifies the emergency orders that the instance applies, "" for none. `written_at` is in
    monotonic seconds.
    """

    id: str
    service: str
    heard_at: datetime | None = None
    mark: bytes | None = None
    publication: SnapshotVersion | None = None
    epoch: UUID | None = None
    version: int | None = None
    applied_at: datetime | None = None
    orders_hash: str = ""
    written_at: float = _NEVER


class PresenceBuffer:
    """Presence notes of the `most` instances that polled last.

    `wake` is called when a note should be written at once.
    """

    def __init__(
        self,
        wall: Callable[[], datetime],
        wake: Callable[[], None],
        most: int = MAX_INSTANCES,
        most_acks: int = MAX_ACKS,
    ) -> None:
        self.dropped = 0
        """Number of notes that were never written because a limit was reached."""
        self.acknowledged_seconds = Histogram(PROPAGATION_SECONDS)
        """Seconds from a change to its acknowledgement by instances with an older version."""
        self.applied_orders = AppliedOrders()
        self._wall = wall
        self._wake = wake
        self._most = most
        self._most_acks = most_acks
        self._notes: OrderedDict[bytes, PresenceNote] = OrderedDict()
        self._urgent: dict[bytes, PresenceNote] = {}
        self._beats: dict[bytes, PresenceNote] = {}
        self._acks: OrderedDict[tuple[UUID, int, str], datetime] = OrderedDict()
        self._scanned_at = _NEVER

    def record_presence(
        self, name: bytes, applied: bytes | None, copy: Copy | None, *, forgets: bool = False
    ) -> None:
        """Record a poll of the instance `name`.

        `applied` is the mark of the version that the instance applies, None if it sent none. `copy`
        is the snapshot served now. With `forgets` (the instance has restarted), the version that it
        applied earlier is reset.
        """
        note = self._notes.get(name)
        if (
            note is None
            or forgets
            or (
                applied is not None
                and (
                    applied != note.mark
                    or (copy is not None and copy.publication is not note.publication)
                )
            )
        ):
            self._record_change(name, note, applied, copy, forgets)
            return
        note.heard_at = at = self._wall()
        if applied is not None:
            note.applied_at = at
        self._notes.move_to_end(name)
        self._beats[name] = note

    def record_orders(self, name: str, order_ids: Collection[str]) -> None:
        """Record the emergency orders that an instance applies by its report; only if it polls."""
        note = self._notes.get(name.encode())
        if note is not None:
            note.orders_hash = self.applied_orders.add_reported(order_ids)

    def count_applied(self, since: datetime) -> tuple[Counter[str], int]:
        """Return how many instances apply each emergency order, and how many there are.

        Counts instances that polled after `since`.
        """
        hashes = Counter[str]()
        for note in reversed(self._notes.values()):
            if note.heard_at is None or note.heard_at < since:
                break
            hashes[note.orders_hash] += 1
        return self.applied_orders.count(hashes), hashes.total()

    def count_heard(self, seconds: float) -> int:
        """Return the number of instances that polled or reported in the last `seconds`."""
        since, number = self._wall() - timedelta(seconds=seconds), 0
        for note in reversed(self._notes.values()):
            if note.heard_at is None or note.heard_at < since:
                break
            number += 1
        return number

    def take_due(self, now: float, most: int, every: float) -> tuple[list[Presence], list[Ack]]:
        """Return up to `most` presences and acknowledgements to write now; mark them as written."""
        due = self._urgent
        if now - self._scanned_at >= every:
            self._scanned_at = now
            for name, note in self._beats.items():
                if now - note.written_at >= HEARTBEAT_SECONDS:
                    due[name] = note
        presences = []
        for name in list(due)[:most]:
            note = due.pop(name)
            self._beats.pop(name, None)
            note.written_at = now
            assert note.heard_at is not None  # noqa: S101 - for the type; see _record_change.
            presences.append(
                Presence(
                    *(note.id, note.service, note.heard_at),
                    *(note.epoch, note.version, note.applied_at),
                )
            )
        acks: list[Ack] = []
        while self._acks and len(acks) < most:
            mark, at = self._acks.popitem(last=False)
            acks.append(Ack(*mark, at))
        return presences, acks

    def put_back(self, presences: list[Presence], acks: list[Ack]) -> None:
        for each in presences:
            name = each.id.encode()
            note = self._notes.get(name)
            if note is None:
                self.dropped += 1
            else:
                note.written_at = _NEVER
                self._urgent[name] = note
        for ack in reversed(acks):
            mark = (ack.epoch, ack.version, ack.instance)
            self._acks[mark] = min(ack.at, self._acks.get(mark, ack.at))
            self._acks.move_to_end(mark, last=False)
        self._trim()

    def _record_change(
        self,
        name: bytes,
        note: PresenceNote | None,
        applied: bytes | None,
        copy: Copy | None,
        forgets: bool,
    ) -> None:
        if note is None:
            try:
                text = name.decode()
            except UnicodeDecodeError:
                return
            if (service := service_of(text)) is None:
                return
            note = self._notes[name] = self._urgent[name] = PresenceNote(text, service)
            self._wake()
        note.heard_at = at = self._wall()
        self._notes.move_to_end(name)
        self._beats[name] = note
        if applied is not None:
            self._record_mark(name, note, applied, copy, at)
        elif forgets:
            if note.version is not None:
                self._urgent[name] = note
                self._wake()
            note.mark = note.publication = note.epoch = note.version = None
            note.orders_hash = ""
            note.applied_at = at
        self._trim()

    def _record_mark(
        self, name: bytes, note: PresenceNote, applied: bytes, copy: Copy | None, at: datetime
    ) -> None:
        """Record that the instance applies the version `applied`; ignore an invalid version mark.

        A repeated mark is not parsed again. A new version is queued as an acknowledgement.
        """
        again = applied == note.mark
        parsed = None if again else _parse_mark(applied, copy)
        if parsed is None and not again:
            return
        note.mark, note.applied_at = applied, at
        note.publication = None if copy is None else copy.publication
        if parsed is None:
            return
        mark, note.orders_hash = parsed
        if note.orders_hash and copy is not None:
            self.applied_orders.add_served(copy)
        if mark != (note.epoch, note.version):
            self._measure(note, mark, at)
            note.epoch, note.version = mark
            self._acks.setdefault((*mark, note.id), at)
            self._urgent[name] = note
            self._wake()

    def _measure(self, note: PresenceNote, mark: tuple[UUID, int], at: datetime) -> None:
        """Observe the seconds from the applied version's publication to its acknowledgement.

        `mark` is the epoch and version that the instance applied. Other versions than the one
        served now are skipped, because their publication time is unknown. So is the first version
        of an instance in an epoch, because it may be older than the instance.
        """
        served, (epoch, version) = note.publication, mark
        if served is None or (served.epoch, served.version) != mark or note.epoch != epoch:
            return
        if note.version is not None and note.version < version:
            since = (at - served.published_at).total_seconds()
            self.acknowledged_seconds.observe(max(0.0, since))

    def _trim(self) -> None:
        while len(self._notes) > self._most:
            name, _ = self._notes.popitem(last=False)
            if self._urgent.pop(name, None) is not None:
                self.dropped += 1
            self._beats.pop(name, None)
        while len(self._acks) > self._most_acks:
            self._acks.popitem(last=False)
            self.dropped += 1


def _parse_mark(applied: bytes, copy: Copy | None) -> tuple[tuple[UUID, int], str] | None:
    """Return (epoch, version) and the hash of orders ("" for none) of a mark; None if invalid.

    A version without an epoch belongs to the epoch of `copy`; without a copy it is invalid.
    """
    if copy is not None and applied.startswith(copy.epoch + b"."):
        digits = applied[len(copy.epoch) + 1 :]
        if digits.isdigit() and len(digits) <= MAX_DIGITS:
            return (copy.publication.epoch, int(digits)), ""
    match = _MARK.fullmatch(applied.strip())
    if match is None:
        return None
    version, orders_hash = int(match[2]), (match[3] or b"").decode()
    if match[1] is not None:
        return (UUID(match[1].decode()), version), orders_hash
    return None if copy is None else ((copy.publication.epoch, version), orders_hash)


def bisect_notes(presences: list[Presence], acks: list[Ack]) -> list[Notes]:
    """Return the halves of a batch of at least two notes; the second is to be written first."""
    if presences and acks:
        return [([], acks), (presences, [])]
    some, more = len(presences) // 2, len(acks) // 2
    return [(presences[some:], acks[more:]), (presences[:some], acks[:more])]


def select_notes(names: Set[str], presences: list[Presence], acks: list[Ack]) -> Notes:
    some = [each for each in presences if each.id in names]
    return some, [ack for ack in acks if ack.instance in names]
