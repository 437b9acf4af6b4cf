"""The signed file from which a restarted relay serves without its upstream. Blocking: use a thread.

The file holds the last bundle as an event with all parts, so that the signature of the control
plane is verified again. The relay's own signature covers the time of the last confirmation, too. As
for a data plane, neither proves age: see :mod:`controlplane.dataplane.storage.snapshot_file`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self
from uuid import UUID

import orjson

from controlplane.core.canonical import timestamp
from controlplane.core.private_files import InvalidFile
from controlplane.dataplane.memory.json_elements import parse_time
from controlplane.dataplane.memory.order_set import ClosedOrders
from controlplane.dataplane.storage.signed_file import (
    SavedContent,
    SignedDocument,
    SignedFiles,
)

from .bundle import InvalidBundle, explain_refusal
from .difference import ReceivedBundle, apply_event, serialize_full
from .trusted_keys import Keys


@dataclass(frozen=True, kw_only=True)
class SavedBundle(SavedContent):
    """A bundle that the upstream confirmed at `confirmed_at`."""

    received: ReceivedBundle

    @property
    def epoch(self) -> UUID:
        return self.received.head.publication.epoch

    @property
    def closed(self) -> ClosedOrders:
        return self.received.contents.closed

    @property
    def settled(self) -> frozenset[UUID]:
        return self.received.contents.settled

    def merge_parts(self, news: Self) -> Self:
        """Return the newer bundle; a signature covers all parts, so none can be exchanged."""
        ours, theirs = self.received.head, news.received.head
        if explain_refusal(ours, theirs):
            return self
        if explain_refusal(theirs, ours):
            return news
        return max(self, news, key=lambda saved: saved.confirmed_at)


class BundleDisk(SignedFiles[SavedBundle]):
    """The file of the last bundle in `folder`; `trusted` returns the public keys that it needs."""

    names = ("bundle", "bundle-previous", "bundle-draft", "bundle-lock")
    max_bytes = 512 * 1024 * 1024

    def __init__(self, folder: Path, key: bytes, trusted: Callable[[], Keys]) -> None:
        super().__init__(folder, key)
        self.document = SignedDocument(b"switchgear-bundle", partial(_parse, trusted), _serialize)


def _serialize(saved: SavedBundle) -> bytes:
    document = {
        "bundle": orjson.Fragment(serialize_full(saved.received.signed)),
        "confirmed_at": timestamp(saved.confirmed_at),
        "left_epochs": sorted(map(str, saved.left_epochs)),
    }
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def _parse(trusted: Callable[[], Keys], document: Any) -> SavedBundle:
    try:
        received = apply_event(None, orjson.dumps(document["bundle"]), trusted())
    except InvalidBundle as error:
        raise InvalidFile(f"its bundle is refused: {error}") from error
    left_epochs = frozenset(map(UUID, document["left_epochs"]))
    if received.head.publication.epoch in left_epochs:
        raise ValueError("its epoch was replaced")
    return SavedBundle(
        received=received,
        left_epochs=left_epochs,
        confirmed_at=parse_time(document["confirmed_at"]),
    )
