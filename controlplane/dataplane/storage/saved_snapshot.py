"""Content of the file from which a data plane starts without a database. Pure.

The file contains the published snapshot, to which emergency orders are added when it is served.
Policies have a file of their own (:mod:`.saved_policies`), because they may be large and change at
other times.
"""

from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, NamedTuple, Self
from uuid import UUID

import orjson

from controlplane.core.canonical import timestamp
from controlplane.dataplane.memory.credentials import CodeTable, TokenTable
from controlplane.dataplane.memory.json_elements import (
    check_count,
    check_text,
    closed_order_element,
    code_element,
    credential_element,
    parse_closed_order,
    parse_code,
    parse_credential,
    parse_entry,
    parse_ownership,
    parse_time,
)
from controlplane.dataplane.memory.order_set import ClosedOrders
from controlplane.dataplane.memory.ownership import NO_OWNERS, OwnershipTable
from switches.snapshot import SCHEMA, OrderIds, SnapshotEntry, SnapshotVersion, render

from .signed_file import SavedContent, SignedDocument


@dataclass(frozen=True, kw_only=True)
class SavedState(SavedContent):
    """The saved state of a data plane.

    `known` holds the ids of all switches ever registered, and `registrations` their number.
    `revision` is the revision of the credentials when `tokens`, emergency `codes` and `owners` were
    read.
    `closed` and `settled` are the emergency orders that are no longer in force.
    """

    publication: SnapshotVersion
    entries: tuple[SnapshotEntry, ...]
    tokens: TokenTable
    revision: int
    known: frozenset[str]
    registrations: int
    codes: CodeTable = field(default_factory=dict)
    owners: OwnershipTable = NO_OWNERS
    closed: ClosedOrders = field(default_factory=dict)
    settled: frozenset[UUID] = frozenset()

    @property
    def epoch(self) -> UUID:
        return self.publication.epoch

    def merge_parts(self, news: Self) -> Self:
        served = max(self, news, key=lambda saved: (saved.publication.version, saved.confirmed_at))
        tokens = max(self, news, key=lambda saved: saved.revision)
        known = max(self, news, key=lambda saved: saved.registrations)
        return replace(
            served,
            tokens=tokens.tokens,
            codes=tokens.codes,
            owners=tokens.owners,
            revision=tokens.revision,
            known=known.known,
            registrations=known.registrations,
        )


class SavedSnapshot(NamedTuple):
    """The part of a :class:`SavedState` that is saved before each new snapshot is served."""

    publication: SnapshotVersion
    entries: tuple[SnapshotEntry, ...]
    orders: OrderIds | None = None


def _serialize(saved: SavedState) -> bytes:
    document = {
        "confirmed_at": timestamp(saved.confirmed_at),
        "known": sorted(saved.known),
        "left_epochs": sorted(str(epoch) for epoch in saved.left_epochs),
        "registrations": check_count(saved.registrations),
        "revision": check_count(saved.revision),
        "snapshot": orjson.Fragment(render(saved.publication, saved.entries)),
        "tokens": [
            credential_element(prefix, credential, with_owner=False)
            for prefix, credential in sorted(saved.tokens.items(), key=itemgetter(0))
        ],
    }
    if saved.owners.chains:  # Older releases ignore them.
        document["owners"] = dict(saved.owners.chains)
    # Older releases can't read a copy with these.
    if saved.codes:
        document["codes"] = [code_element(name, code) for name, code in sorted(saved.codes.items())]
    if saved.closed:
        document["closed_orders"] = [
            closed_order_element(order_id, order)
            for order_id, order in sorted(saved.closed.items())
        ]
    if saved.settled:
        document["settled_orders"] = sorted(map(str, saved.settled))
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def _parse(document: Any) -> SavedState:
    publication, entries, _ = parse_snapshot(document["snapshot"])
    left_epochs = frozenset(UUID(epoch) for epoch in document["left_epochs"])
    if publication.epoch in left_epochs:
        raise ValueError("its epoch was replaced")
    return SavedState(
        publication=publication,
        entries=entries,
        tokens=dict(map(parse_credential, document["tokens"])),
        revision=check_count(document["revision"]),
        known=frozenset(map(check_text, document["known"])),
        registrations=check_count(document["registrations"]),
        codes=dict(map(parse_code, document.get("codes", ()))),
        owners=OwnershipTable(
            {key: parse_ownership(value) for key, value in document.get("owners", {}).items()}
        ),
        closed=dict(map(parse_closed_order, document.get("closed_orders", ()))),
        settled=frozenset(map(UUID, document.get("settled_orders", ()))),
        left_epochs=left_epochs,
        confirmed_at=parse_time(document["confirmed_at"]),
    )


def parse_snapshot(snapshot: Any) -> SavedSnapshot:
    if snapshot["schema"] != SCHEMA:
        raise ValueError(f"the snapshot's schema is not {SCHEMA}")
    publication = SnapshotVersion(
        UUID(snapshot["epoch"]),
        check_count(snapshot["version"]),
        parse_time(snapshot["published_at"]),
    )
    entries = tuple(parse_entry(each) for each in snapshot["switches"])
    if len({entry.id for entry in entries}) != len(entries):
        raise ValueError("a switch is listed twice")
    ids = snapshot.get("emergency")
    orders = None if ids is None else OrderIds(tuple(ids["open"]), tuple(ids["closed"]))
    return SavedSnapshot(publication, entries, orders)


STATE = SignedDocument(b"switchgear-copy", _parse, _serialize)
SNAPSHOT = SignedDocument(
    b"switchgear-snapshot",
    parse_snapshot,
    lambda saved: render(saved.publication, saved.entries, saved.orders),
)
