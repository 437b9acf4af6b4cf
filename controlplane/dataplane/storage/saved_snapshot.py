"""Content of the file from which a data plane starts without a database. Pure.

The file contains the published snapshot, to which emergency orders are added when it is served.
Policies have a file of their own (:mod:`.saved_policies`), because they may be large and change at
other times.
"""

from dataclasses import dataclass, field, replace
from decimal import Decimal
from operator import itemgetter
from typing import Any, NamedTuple, Self
from uuid import UUID

import orjson

from controlplane.core.canonical import timestamp
from controlplane.dataplane.memory.credentials import (
    CodeHash,
    CodeTable,
    Credential,
    TokenTable,
)
from controlplane.dataplane.memory.order_set import ClosedOrder, ClosedOrders
from switches.snapshot import SCHEMA, OrderIds, SnapshotEntry, SnapshotVersion, render

from .signed_file import SavedContent, SignedDocument, check_count, check_text, parse_time

DIGEST_BYTES = 32


@dataclass(frozen=True, kw_only=True)
class SavedState(SavedContent):
    """The saved state of a data plane.

    `known` holds the ids of all switches ever registered, and `registrations` their number.
    `revision` is the revision of the credentials when `tokens` and emergency `codes` were read.
    `closed` and `settled` are the emergency orders that are no longer in force.
    """

    publication: SnapshotVersion
    entries: tuple[SnapshotEntry, ...]
    tokens: TokenTable
    revision: int
    known: frozenset[str]
    registrations: int
    codes: CodeTable = field(default_factory=dict)
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
    tokens = []
    for prefix, credential in sorted(saved.tokens.items(), key=itemgetter(0)):
        token = {
            "digest": credential.digest.hex(),
            "expires_at": credential.expires_at,
            "id": credential.token_id,
            "name": credential.name,
            "prefix": prefix.decode("ascii"),
            "scopes": sorted(credential.scopes),
        }
        # Without services the format is that of older releases, which can read the copy then.
        if credential.services:
            token["services"] = sorted(credential.services)
        tokens.append(token)
    document = {
        "confirmed_at": timestamp(saved.confirmed_at),
        "known": sorted(saved.known),
        "left_epochs": sorted(str(epoch) for epoch in saved.left_epochs),
        "registrations": check_count(saved.registrations),
        "revision": check_count(saved.revision),
        "snapshot": orjson.Fragment(render(saved.publication, saved.entries)),
        "tokens": tokens,
    }
    # Older releases can't read a copy with these.
    if saved.codes:
        document["codes"] = [
            {
                "digest": code.digest.hex(),
                "name": name,
                "salt": code.salt.hex(),
                "user_id": code.user_id,
            }
            for name, code in sorted(saved.codes.items())
        ]
    if saved.closed:
        document["closed_orders"] = [
            {"at": timestamp(order.at), "id": str(order_id), "subject": order.subject}
            for order_id, order in sorted(saved.closed.items())
        ]
    if saved.settled:
        document["settled_orders"] = sorted(map(str, saved.settled))
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def _parse(document: Any) -> SavedState:
    publication, entries, _ = _parse_snapshot(document["snapshot"])
    left_epochs = frozenset(UUID(epoch) for epoch in document["left_epochs"])
    if publication.epoch in left_epochs:
        raise ValueError("its epoch was replaced")
    return SavedState(
        publication=publication,
        entries=entries,
        tokens=dict(_parse_credential(each) for each in document["tokens"]),
        revision=check_count(document["revision"]),
        known=frozenset(map(check_text, document["known"])),
        registrations=check_count(document["registrations"]),
        codes=dict(_parse_code(each) for each in document.get("codes", ())),
        closed={
            UUID(each["id"]): ClosedOrder(parse_time(each["at"]), check_text(each["subject"]))
            for each in document.get("closed_orders", ())
        },
        settled=frozenset(map(UUID, document.get("settled_orders", ()))),
        left_epochs=left_epochs,
        confirmed_at=parse_time(document["confirmed_at"]),
    )


def _parse_snapshot(snapshot: Any) -> SavedSnapshot:
    if snapshot["schema"] != SCHEMA:
        raise ValueError(f"the snapshot's schema is not {SCHEMA}")
    publication = SnapshotVersion(
        UUID(snapshot["epoch"]),
        check_count(snapshot["version"]),
        parse_time(snapshot["published_at"]),
    )
    entries = tuple(_parse_entry(each) for each in snapshot["switches"])
    if len({entry.id for entry in entries}) != len(entries):
        raise ValueError("a switch is listed twice")
    ids = snapshot.get("emergency")
    orders = None if ids is None else OrderIds(tuple(ids["open"]), tuple(ids["closed"]))
    return SavedSnapshot(publication, entries, orders)


def _parse_entry(element: Any) -> SnapshotEntry:
    scope, key = check_text(element["scope"]), check_text(element["key"])
    if element["id"] != f"{scope}:{key}":
        raise ValueError("a switch's id is not its scope and key")
    expires_at = element["expires_at"]
    return SnapshotEntry(
        id=element["id"],
        scope=scope,
        key=key,
        allow_percent=Decimal(str(element["allow_percent"])),
        salt=check_text(element["salt"]),
        reason=check_text(element["reason"]),
        engaged_at=parse_time(element["engaged_at"]),
        expires_at=None if expires_at is None else parse_time(expires_at),
        on_expiry=check_text(element["on_expiry"]),
    )


def _parse_credential(element: Any) -> tuple[bytes, Credential]:
    digest = bytes.fromhex(element["digest"])
    if len(digest) != DIGEST_BYTES:
        raise ValueError("a token's digest is not a SHA-256")
    expires_at = element["expires_at"]
    if not (expires_at is None or isinstance(expires_at, float)):
        raise TypeError("a token's expiry is not a time")
    return element["prefix"].encode("ascii"), Credential(
        token_id=check_count(element["id"]),
        name=check_text(element["name"]),
        digest=digest,
        scopes=frozenset(map(check_text, element["scopes"])),
        expires_at=expires_at,
        services=frozenset(map(check_text, element.get("services", ()))),
    )


def _parse_code(element: Any) -> tuple[str, CodeHash]:
    return check_text(element["name"]), CodeHash(
        check_count(element["user_id"]),
        bytes.fromhex(element["salt"]),
        bytes.fromhex(element["digest"]),
    )


STATE = SignedDocument(b"switchgear-copy", _parse, _serialize)
SNAPSHOT = SignedDocument(
    b"switchgear-snapshot",
    _parse_snapshot,
    lambda saved: render(saved.publication, saved.entries, saved.orders),
)
