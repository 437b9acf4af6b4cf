"""The published file, and the decision whether it may replace the present one. Pure.

It has the published snapshot as text, its signature, and the time when the database last confirmed
it. The signature does not cover that time.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any
from uuid import UUID

import orjson

from controlplane.core.canonical import timestamp
from controlplane.dataplane.memory.served_copy import Copy
from switches.snapshot import SnapshotVersion

NAME = "snapshot.json"
MAX_BYTES = 40 * 2**20
FRESH = timedelta(seconds=15)
"""Age of the present file's confirmation up to which another process need not write it again."""


class InvalidPublishedFile(ValueError):
    """A content that is no published file."""


class Decision(Enum):
    """The treatment of the present file."""

    WRITE = "write"
    KEEP = "keep"
    """The present file says the same."""
    REFUSE = "refuse"
    """The present file is newer than this data plane."""


@dataclass(frozen=True, slots=True)
class FileHead:
    """The facts in a published file, without the snapshot's text."""

    publication: SnapshotVersion
    signature: str
    confirmed_at: datetime


def describe_copy(copy: Copy, confirmed_at: datetime) -> FileHead:
    return FileHead(copy.publication, copy.signature, confirmed_at)


def render_file(head: FileHead, body: bytes) -> bytes:
    """Return the content of the file; `body` is the document that the signature covers."""
    fields = {
        "confirmed_at": timestamp(head.confirmed_at),
        "signature": head.signature,
        "snapshot": body.decode(),
    }
    return orjson.dumps(fields)


def parse_head(content: bytes) -> FileHead:
    """Return what a file says; raise :class:`InvalidPublishedFile`. Nothing is verified."""
    try:
        fields: dict[str, Any] = orjson.loads(content)
        document = orjson.loads(fields["snapshot"])
        publication = SnapshotVersion(
            UUID(document["epoch"]),
            int(document["version"]),
            _parse_time(document["published_at"]),
        )
        return FileHead(publication, str(fields["signature"]), _parse_time(fields["confirmed_at"]))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InvalidPublishedFile(f"{type(error).__name__}: {error}") from error


def decide(ours: FileHead, present: FileHead | None, left_epochs: Collection[UUID]) -> Decision:
    """Return what to do with our file.

    A newer version is never replaced. Of two epochs, one that was left is older; if neither is
    known to be left, the one published later is newer.
    """
    if present is None:
        return Decision.WRITE
    own, other = ours.publication, present.publication
    if own.epoch != other.epoch:
        is_older = other.epoch in left_epochs or other.published_at <= own.published_at
        return Decision.WRITE if is_older else Decision.REFUSE
    if other.version > own.version:
        return Decision.REFUSE
    is_same = other.version == own.version and present.signature == ours.signature
    is_fresh = ours.confirmed_at - present.confirmed_at < FRESH
    return Decision.KEEP if is_same and is_fresh else Decision.WRITE


def _parse_time(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("a time has no zone")
    return moment
