"""A snapshot version with its rendered bytes and headers, its drill copy, and version marks.

A version mark `<epoch>.<version>` is sent in If-None-Match and Last-Event-ID. A suffix identifies
the open emergency orders, or the document of drill instances; in an ETag, `-gzip` identifies the
gzip form.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from typing import Optional

from controlplane.core.content_encoding import gzip_etag
from controlplane.core.signatures import HEADER as SIGNATURE
from switches.drills.patterns import Marks
from switches.snapshot import (
    OrderIds,
    SnapshotEntry,
    SnapshotVersion,
    assemble,
    render_entry,
)

from .compression import VARY, GzipForm, Header
from .instance_names import service_of

JSON = (b"content-type", b"application/json")
NO_CACHE = (b"cache-control", b"no-cache")
VARY_IN_DRILLS: Header = (b"vary", b"Accept-Encoding, Switchgear-Instance")

MAX_CHUNK_BYTES = 32 * 1024
MAX_NAMES = 20_000
"""Most instance names whose match with the marks of drills is cached."""

NO_ORDERS = OrderIds()
_SIGNATURE = SIGNATURE.lower().encode()

Mark = tuple[bytes, bytes, bytes | None]
"""Epoch as text, version in decimal digits, and suffix.

The suffix None, of an event id, matches any copy without emergency orders.
"""

_MARK = rb"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([0-9]{1,18})"
_SUFFIX = rb"(-[0-9a-f]{8}|)"
_ENTITY_TAG = re.compile(rb'"' + _MARK + _SUFFIX + rb'(?:-gzip)?"')
_EVENT_ID = re.compile(_MARK + _SUFFIX)


@dataclass(frozen=True, slots=True)
class Copy:
    """A rendered snapshot: body, gzip form, entries by switch id, and response headers.

    `elements` are the bytes of each entry. `event` is the body as streams send it, in chunks,
    because servers buffer a number of unread chunks whatever their size. `validators` are headers
    of both 200 and 304, `description` of 200 only, and `gzip_validators` of a 304 for a client that
    has the gzip form. `orders` are the ids of emergency orders, and `orders_hash` identifies those
    that the version doesn't imply. `drill_snapshot` selects the copies of instances in drills.
    `suffix` distinguishes the marks of copies of one version. `is_kept` is True for a copy restored
    from disk, which has no drills.

    `signature` is the header `Switchgear-Signature`, "" if the copy is not signed, and
    `signed_body` is the document that it covers: the published one. A copy that adds emergency
    orders or drills to it has another body, which contains the signed document as text.
    """

    publication: SnapshotVersion
    entries: Mapping[str, SnapshotEntry]
    elements: Mapping[str, bytes]
    body: bytes
    event: tuple[bytes, ...]
    epoch: bytes
    suffix: bytes
    etag: bytes
    gzip_etag: bytes
    gzip: GzipForm = field(compare=False)
    validators: tuple[Header, ...]
    gzip_validators: tuple[Header, ...]
    description: tuple[Header, ...]
    drill_snapshot: "DrillSnapshot | None" = None
    is_kept: bool = False
    orders: OrderIds = NO_ORDERS
    orders_hash: str = ""
    signature: str = ""
    signed_body: bytes = b""

    @classmethod
    def render(
        cls,
        publication: SnapshotVersion,
        entries: Iterable[SnapshotEntry],
        before: Optional["Copy"] = None,
        *,
        drill_snapshot: "DrillSnapshot | None" = None,
        is_kept: bool = False,
        is_drill_copy: bool = False,
        orders: OrderIds = NO_ORDERS,
        orders_hash: str = "",
        published: Optional["Copy"] = None,
        elements: Mapping[str, bytes] | None = None,
        body: bytes | None = None,
        signature: str = "",
    ) -> "Copy":
        """Render `entries` as version `publication`, reusing unchanged elements of `before`.

        `is_drill_copy` is True for the copy of instances in drills. `orders_hash` identifies
        emergency orders that the version doesn't imply. A copy that adds to a published one names
        it in `published`, and takes over its signature.
        Bytes that were signed elsewhere are used as they are: `elements`, `body` and `signature`.
        """
        by_id = {entry.id: entry for entry in sorted(entries, key=lambda entry: entry.id)}
        known = {} if before is None else before.entries
        if elements is None:
            elements = {
                entry.id: before.elements[entry.id]
                if before is not None and known.get(entry.id) == entry
                else render_entry(entry)
                for entry in by_id.values()
            }
        signed_body = b""
        if published is not None:
            signature, signed_body = published.signature, published.signed_body
        if body is None:
            body = assemble(publication, elements.values(), orders, signed=signed_body)
        if signature and published is None:
            signed_body = body
        mark = publication.mark.encode()
        suffix = f"-{orders_hash}".encode() if orders_hash else b""
        event = _render_event(mark + suffix, body, signature)
        if is_drill_copy:
            suffix = b"-" + sha256(body).hexdigest()[:8].encode()
        etag = b'"%b%b"' % (mark, suffix)
        in_drill = is_drill_copy or drill_snapshot is not None
        version = (b"switchgear-version", str(publication.version).encode())
        shared = (version, NO_CACHE, VARY_IN_DRILLS if in_drill else VARY)
        return cls(
            publication=publication,
            entries=by_id,
            elements=elements,
            body=body,
            event=event,
            epoch=str(publication.epoch).encode(),
            suffix=suffix,
            etag=etag,
            gzip_etag=gzip_etag(etag),
            gzip=GzipForm(body),
            validators=((b"etag", etag), *shared),
            gzip_validators=((b"etag", gzip_etag(etag)), *shared),
            description=_describe(body, signature),
            drill_snapshot=drill_snapshot,
            is_kept=is_kept,
            orders=orders,
            orders_hash=orders_hash,
            signature=signature,
            signed_body=signed_body,
        )

    def with_signature(self, signature: str) -> "Copy":
        """Return this published copy with the signature of its body."""
        return replace(
            self,
            event=_render_event(self.publication.mark.encode(), self.body, signature),
            description=_describe(self.body, signature),
            signature=signature,
            signed_body=self.body,
        )


def _render_event(event_id: bytes, body: bytes, signature: str) -> tuple[bytes, ...]:
    """Return the event that streams send, in chunks."""
    signed = f"signature: {signature}\n".encode() if signature else b""
    return split_event(b"id: %b\nevent: snapshot\n%bdata: %b\n\n" % (event_id, signed, body))


def split_event(event: bytes) -> tuple[bytes, ...]:
    """Return an event in the chunks in which streams send it."""
    starts = range(0, len(event), MAX_CHUNK_BYTES)
    return tuple(event[start : start + MAX_CHUNK_BYTES] for start in starts)


def _describe(body: bytes, signature: str) -> tuple[Header, ...]:
    """Return the headers of a response 200."""
    signed = ((_SIGNATURE, signature.encode()),) if signature else ()
    return (JSON, (b"content-length", str(len(body)).encode()), *signed)


@dataclass(slots=True, eq=False)
class DrillSnapshot:
    """Selects an instance's snapshot: the drill copy (drilled switches engaged) if it takes part.

    `marks` are patterns of the names of instances that take part, and `drilled` the entries of the
    drilled switches. All other instances get the normal snapshot of the same version, with another
    ETag. The version is incremented when a drill starts or ends and when its marks change. Even
    without the control plane, a drill ends at its deadline, here and in the client.
    """

    marks: Marks
    drilled: Sequence[SnapshotEntry]
    _made: tuple[tuple[SnapshotEntry, ...], Copy, Copy] | None = field(default=None, repr=False)
    """The last drill copy, after the drilled switches and the normal copy that it was made of."""
    _names: dict[bytes, bool] = field(default_factory=dict, repr=False)

    def copy_for(self, name: bytes | None, now: datetime, normal: Copy) -> Copy:
        """Return the drill copy if the instance `name` is in a running drill, else `normal`."""
        if not self.is_for(name):
            return normal
        running = tuple(
            entry
            for entry in self.drilled
            if entry.expires_at is not None and now < entry.expires_at  # The drill's deadline.
            if entry.id not in normal.entries  # Else the switch is engaged for real.
        )
        if not running:
            return normal
        # The normal copy of a version changes with the emergency orders.
        if self._made is None or self._made[1] is not normal or self._made[0] != running:
            entries = (*normal.entries.values(), *running)
            copy = normal.render(
                normal.publication,
                entries,
                normal,
                is_drill_copy=True,
                orders=normal.orders,
                orders_hash=normal.orders_hash,
                published=normal,
            )
            self._made = running, normal, copy
        return self._made[2]

    def is_for(self, name: bytes | None) -> bool:
        if name is None:
            return False
        known = self._names.get(name)
        if known is None:
            text = name.decode("utf-8", "replace")
            known = service_of(text) is not None and self.marks.match(text)
            if len(self._names) >= MAX_NAMES:
                self._names.clear()
            self._names[name] = known
        return known


def parse_tags(if_none_match: bytes) -> list[Mark]:
    return _ENTITY_TAG.findall(if_none_match)


def parse_event_id(last_event_id: bytes) -> list[Mark]:
    """Return the version mark in a Last-Event-ID header, as a list of at most one."""
    match = _EVENT_ID.fullmatch(last_event_id)
    return [] if match is None else [(match[1], match[2], match[3] or None)]


def match_copy(marks: Sequence[Mark], copy: Copy) -> bool:
    """Return True if one of `marks` names `copy`, or a newer version of its epoch.

    A newer version comes from a replica that is ahead of this one, so the client keeps it, unless
    this copy has emergency orders that the client may lack. A copy restored from disk has no
    drills; without orders, any suffix matches it, so that clients keep their drill copies.
    """
    # A loop, because a generator costs several times as much, for every held poll of each change.
    for epoch, version, suffix in marks:
        ahead = int(version) - copy.publication.version
        if epoch != copy.epoch or ahead < 0:
            continue
        if suffix == copy.suffix:
            return True
        if not copy.orders_hash and (ahead or suffix is None or copy.is_kept):
            return True
    return False
