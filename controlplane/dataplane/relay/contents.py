"""Typed contents of a bundle, as a relay installs them. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

import orjson

from controlplane.core.degradation_levels import Cause
from controlplane.dataplane.memory.credentials import CodeTable, TokenTable
from controlplane.dataplane.memory.json_elements import (
    check_text,
    parse_closed_order,
    parse_code,
    parse_credential,
    parse_entry,
    parse_ownership,
    parse_policy,
)
from controlplane.dataplane.memory.order_set import ClosedOrders
from controlplane.dataplane.memory.ownership import NO_OWNERS, OwnershipTable
from controlplane.dataplane.memory.policies import DependencyPolicy, Policies, parse_cause
from controlplane.dataplane.memory.served_copy import DrillSnapshot
from controlplane.dataplane.storage.saved_snapshot import parse_snapshot
from switches.drills.patterns import Marks
from switches.snapshot import OrderIds, SnapshotEntry

from . import bundle
from .bundle import Bundle, Part
from .collection import ALL_CAUSES, FRAME, MARKS, SETTLED

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A published snapshot: entries and their bytes, in order of their ids, and the body."""

    entries: Mapping[str, SnapshotEntry]
    elements: Mapping[str, bytes]
    body: bytes
    orders: OrderIds


@dataclass(frozen=True, slots=True)
class BundleContents:
    """The typed parts of a bundle. `policies` is None while the upstream has none of this epoch."""

    snapshot: Snapshot
    drills: DrillSnapshot | None
    closed: ClosedOrders
    settled: frozenset[UUID]
    tokens: TokenTable
    codes: CodeTable
    owners: OwnershipTable
    known: frozenset[str]
    policies: Policies | None
    causes: tuple[Cause, ...]


@dataclass(frozen=True, slots=True)
class _Reader:
    """Parses the parts of `after`, except those and the values that equal those of `before`."""

    after: Bundle
    before: Bundle | None
    contents: BundleContents | None
    """The contents of `before`."""

    def read(
        self, name: str, parse: Callable[[Part], T], known: Callable[[BundleContents], T]
    ) -> T:
        part, before = self.after.parts[name], self.before
        if before is not None and self.contents is not None and before.parts.get(name) is part:
            return known(self.contents)
        return parse(part)

    def read_map(
        self,
        name: str,
        parse: Callable[[Any], tuple[Any, T]],
        known: Callable[[BundleContents], Mapping[Any, T]],
        key_of: Callable[[str], Any],
    ) -> Mapping[Any, T]:
        """Return a part's parsed values by their keys; `key_of` returns the key of a line."""

        def parse_part(part: Part) -> Mapping[Any, T]:
            lines: Mapping[str, bytes] = {}
            parsed: Mapping[Any, T] = {}
            if self.before is not None and self.contents is not None:
                lines, parsed = self.before.parts[name].values, known(self.contents)
            return {
                key_of(line): parsed[key_of(line)]
                if lines.get(line) == value and key_of(line) in parsed
                else _parse_value(value, line, parse, key_of)
                for line, value in part.values.items()
                if value != SETTLED
            }

        return self.read(name, parse_part, known)


def read_contents(
    after: Bundle, before: Bundle | None = None, contents: BundleContents | None = None
) -> BundleContents:
    """Return the contents of `after`; `contents` are those of `before`, and are reused.

    Raises KeyError, TypeError or ValueError if a value is invalid.
    """
    reader = _Reader(after, before, contents)
    return BundleContents(
        snapshot=_read_snapshot(reader),
        drills=reader.read(bundle.DRILLS, _parse_drills, lambda known: known.drills),
        closed=reader.read_map(
            bundle.CLOSED_ORDERS, parse_closed_order, lambda known: known.closed, UUID
        ),
        settled=reader.read(bundle.CLOSED_ORDERS, _parse_settled, lambda known: known.settled),
        tokens=reader.read_map(
            bundle.TOKENS, parse_credential, lambda known: known.tokens, str.encode
        ),
        codes=reader.read_map(bundle.CODES, parse_code, lambda known: known.codes, str),
        owners=_read_owners(reader),
        known=reader.read(
            bundle.KNOWN, lambda part: frozenset(part.values), lambda known: known.known
        ),
        policies=_read_policies(reader),
        causes=reader.read(bundle.CAUSES, _parse_causes, lambda known: known.causes),
    )


def _parse_value(
    value: bytes, line: str, parse: Callable[[Any], tuple[Any, T]], key_of: Callable[[str], Any]
) -> T:
    key, parsed = parse(orjson.loads(value))
    if key != key_of(line):
        raise ValueError(f"an element has another key than {line!r}")
    return parsed


def _read_snapshot(reader: _Reader) -> Snapshot:
    head, part = reader.after.head, reader.after.parts[bundle.SNAPSHOT]
    before = None if reader.contents is None else reader.contents.snapshot
    start, end = map(check_text, orjson.loads(part.values[FRAME]))
    elements = {key: part.values[key] for key in sorted(part.values.keys() - {FRAME})}
    body = b"%b%b%b" % (start.encode(), b",".join(elements.values()), end.encode())
    document = orjson.loads(start + end)
    if document["switches"]:
        raise ValueError("the frame of the snapshot holds elements")
    publication, _, orders = parse_snapshot(document)
    if publication != head.publication:
        raise ValueError("the snapshot has another version than the bundle")
    entries = {}
    for key, element in elements.items():
        if before is not None and before.elements.get(key) == element:
            entries[key] = before.entries[key]
            continue
        entries[key] = parse_entry(orjson.loads(element))
        if entries[key].id != key:
            raise ValueError(f"an entry has another id than {key!r}")
    return Snapshot(entries, elements, body, orders or OrderIds())


def _parse_drills(part: Part) -> DrillSnapshot | None:
    if not part.values:
        return None
    marks = orjson.loads(part.values[MARKS])
    names, services = (frozenset(map(check_text, marks[each])) for each in ("names", "services"))
    drilled = [parse_entry(orjson.loads(text)) for key, text in part.values.items() if key != MARKS]
    return DrillSnapshot(Marks(names, services), drilled)


def _parse_settled(part: Part) -> frozenset[UUID]:
    return frozenset(UUID(key) for key, value in part.values.items() if value == SETTLED)


def _read_owners(reader: _Reader) -> OwnershipTable:
    if bundle.OWNERS not in reader.after.parts:
        return NO_OWNERS
    return reader.read(bundle.OWNERS, _parse_owners, lambda known: known.owners)


def _parse_owners(part: Part) -> OwnershipTable:
    return OwnershipTable(
        {key: parse_ownership(orjson.loads(value)) for key, value in part.values.items()}
    )


def _read_policies(reader: _Reader) -> Policies | None:
    head = reader.after.head
    if head.policies < 0:
        return None
    before, epoch = reader.before, head.publication.epoch
    known = None if reader.contents is None else reader.contents.policies
    part = reader.after.parts[bundle.POLICIES]
    lines: Mapping[str, bytes] = {}
    if before is None or known is None or known.epoch != epoch:
        known = Policies.build(epoch, 0, ())
    else:
        lines = before.parts[bundle.POLICIES].values
        if lines.keys() - part.values.keys():  # Dependencies are never deleted within an epoch.
            known, lines = Policies.build(epoch, 0, ()), {}
    changed = [
        _parse_policy(key, value) for key, value in part.values.items() if lines.get(key) != value
    ]
    if not changed and (known.version, known.changed_at) == (head.policies, head.policies_at):
        return known
    return known.with_changes(head.policies, changed, head.policies_at)


def _parse_policy(key: str, value: bytes) -> DependencyPolicy:
    policy = parse_policy(orjson.loads(value))
    if f"{policy.caller}->{policy.callee}" != key:
        raise ValueError(f"a policy has another key than {key!r}")
    return policy


def _parse_causes(part: Part) -> tuple[Cause, ...]:
    if not part.values:
        return ()
    return tuple(map(parse_cause, orjson.loads(part.values[ALL_CAUSES])))
