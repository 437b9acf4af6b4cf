"""The snapshot of open episodes and emergency orders: canonical bytes and ETag.

Canonical JSON per RFC 8785: sorted keys, no spaces, unescaped UTF-8, shortest numbers. One state
has exactly one text, so signatures of the bytes can be verified anywhere.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

import orjson

from controlplane.core.canonical import timestamp
from switches.bucketing import basis_points

SCHEMA = 1
POLL_SECONDS = 5
LISTED = timedelta(hours=24)
"""Time for which snapshots list a closed emergency order."""


@dataclass(frozen=True, slots=True)
class SnapshotVersion:
    """The version of a snapshot; versions grow within an epoch, in commit order."""

    epoch: UUID
    version: int
    published_at: datetime

    @property
    def mark(self) -> str:
        """Return `<epoch>.<version>`, the id of stream events and acknowledgments."""
        return f"{self.epoch}.{self.version}"

    @property
    def etag(self) -> str:
        """Return the snapshot's ETag: `<epoch>.<version>` in quotes."""
        return f'"{self.mark}"'


@dataclass(frozen=True, slots=True)
class SnapshotEntry:
    """An engaged or ramping switch with its open episode, or with its open emergency order.

    `emergency` is the id of that order, "" for an episode.
    """

    id: str
    scope: str
    key: str
    allow_percent: Decimal
    salt: str
    reason: str
    engaged_at: datetime
    expires_at: datetime | None
    on_expiry: str
    emergency: str = ""

    @property
    def state(self) -> str:
        return "ramping" if self.allow_percent else "engaged"


@dataclass(frozen=True, slots=True)
class OrderIds:
    """The ids of emergency orders in a snapshot: those in force, and those no longer in force.

    `hidden` maps orders in force to their switches, if another entry engages the switch. So a
    client knows them, in case that entry ends first.
    """

    open: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    hidden: Mapping[str, str] = field(default_factory=dict)


def drill_reason(reason: str) -> str:
    return f"Drill: {reason}"


def render(
    publication: SnapshotVersion,
    entries: Iterable[SnapshotEntry],
    orders: OrderIds | None = None,
) -> bytes:
    """Return the canonical bytes of a snapshot; switches are sorted by id, by code point."""
    elements = map(render_entry, sorted(entries, key=lambda entry: entry.id))
    return assemble(publication, elements, orders)


def assemble(
    publication: SnapshotVersion,
    elements: Iterable[bytes],
    orders: OrderIds | None = None,
    *,
    signed: bytes = b"",
) -> bytes:
    """Return the canonical bytes of a snapshot from the bytes of its switches, in order of id.

    `orders` is the field `emergency`, which is left out if it is None. `signed` is the published
    snapshot to which this one adds blocks; the field of this name has it as text.
    """
    document: dict[str, object] = {
        "schema": SCHEMA,
        "epoch": str(publication.epoch),
        "version": publication.version,
        "published_at": timestamp(publication.published_at),
        "poll_seconds": POLL_SECONDS,
        "switches": orjson.Fragment(b"[%b]" % b",".join(elements)),
    }
    if orders is not None:
        document["emergency"] = {
            "open": orders.open,
            "closed": orders.closed,
            **({"hidden": orders.hidden} if orders.hidden else {}),
        }
    if signed:
        document["signed"] = signed.decode()
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def render_entry(entry: SnapshotEntry) -> bytes:
    fields = {
        "id": entry.id,
        "scope": entry.scope,
        "key": entry.key,
        "state": entry.state,
        "allow_percent": render_percent(entry.allow_percent),
        "salt": entry.salt,
        "reason": entry.reason,
        "engaged_at": timestamp(entry.engaged_at),
        "expires_at": None if entry.expires_at is None else timestamp(entry.expires_at),
        "on_expiry": entry.on_expiry,
    }
    if entry.emergency:
        fields["emergency"] = entry.emergency
    return orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)


def render_percent(percent: Decimal) -> int | float:
    """Return a whole percentage as an integer, others as a float: 0, 5 or 12.5."""
    if not percent:
        return 0
    points = basis_points(percent)
    return points // 100 if points % 100 == 0 else points / 100
