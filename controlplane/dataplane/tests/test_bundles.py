"""Bundles of relays: equal contents by any way, and refusal of whatever is not signed and next."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.signatures import SigningKey, sign, verify
from controlplane.dataplane.memory.credentials import CodeHash
from controlplane.dataplane.memory.order_set import ClosedOrder, OrderSet
from controlplane.dataplane.memory.ownership import NO_OWNERS, OwnershipTable
from controlplane.dataplane.memory.policies import DependencyPolicy, Policies
from controlplane.dataplane.memory.served_copy import Copy, DrillSnapshot
from controlplane.dataplane.relay.bundle import (
    CAUSES,
    KNOWN,
    OWNERS,
    POLICIES,
    SIGNED_PREFIX,
    BundleHead,
    InvalidBundle,
    Part,
    SignedBundle,
    explain_refusal,
    find_older_parts,
    sign_bundle,
)
from controlplane.dataplane.relay.collection import collect
from controlplane.dataplane.relay.difference import (
    OlderBundle,
    ReceivedBundle,
    apply_event,
    serialize_difference,
    serialize_full,
)
from controlplane.dataplane.state import State
from controlplane.dataplane.tests.copies import (
    CAUSE,
    CREDENTIAL,
    ENTRY,
    EPOCH,
    NOON,
    OTHER_EPOCH,
    POLICY,
    THIRD_EPOCH,
)
from switches.drills.patterns import Marks
from switches.snapshot import SnapshotEntry, SnapshotVersion

KEY = SigningKey(bytes(range(32)))
KEYS = {KEY.public.id: KEY.public}
OWNED = replace(CREDENTIAL, owner_id=3, role="operator", services=frozenset({"core", "pay"}))
MARKS = Marks(frozenset({"core/canary-1"}), frozenset({"search"}))
HEAD = BundleHead(
    publication=SnapshotVersion(EPOCH, 17, NOON),
    snapshot_signature="",
    is_kept=False,
    revision=4,
    registrations=2,
    policies=9,
    policies_at=NOON,
    degradation=3,
    left_epochs=frozenset({OTHER_EPOCH}),
)


def entry(name: str, percent: int = 0) -> SnapshotEntry:
    return replace(ENTRY, id=f"segment:{name}", key=name, allow_percent=Decimal(percent))


class Plane:
    """The state of a data plane, changed step by step."""

    def __init__(self) -> None:
        self.state = State()
        self.state.install_keys([KEY], ())
        self.epochs = [EPOCH, THIRD_EPOCH, OTHER_EPOCH]
        self.last: SignedBundle | None = None
        self.publish([])
        self.state.install_tokens(1, {b"relay00001": OWNED}, {})
        self.state.install_known(1, frozenset({"global:all"}))

    def publish(self, entries: list[SnapshotEntry], drilled: bool = False) -> None:
        before = self.state.published
        version = 1 if before is None else before.publication.version + 1
        at = NOON + timedelta(seconds=version)
        copy = Copy.render(
            SnapshotVersion(self.epochs[0], version, at),
            entries,
            before,
            drill_snapshot=DrillSnapshot(MARKS, [entry("drilled")]) if drilled else None,
            orders=OrderSet(closed=self.state.orders.closed).listed_ids(at),
        )
        self.state.install_copy(copy, 0.0)

    def close_orders(self, numbers: set[int]) -> None:
        assert self.state.published is not None
        closed = {UUID(int=number): ClosedOrder(NOON, "segment:chat") for number in numbers}
        self.state.install_copy(self.state.published, 0.0, closed)
        self.publish([*self.state.published.entries.values()])

    def grant(self, numbers: set[int]) -> None:
        tokens = {
            b"%010d" % number: replace(OWNED, token_id=number, digest=bytes([number] * 32))
            for number in numbers
        }
        codes = {f"kim{number}": CodeHash(number, b"salt", b"hash") for number in numbers}
        owners = OwnershipTable({f"service:s{number}": ("web", "company") for number in numbers})
        self.state.install_tokens(self.state.revision + 1, tokens, codes, owners)

    def register(self, numbers: set[int]) -> None:
        known = self.state.known | {f"feature:{number}" for number in numbers}
        self.state.install_known(self.state.registrations + 1, known)

    def set_policies(self, numbers: set[int]) -> None:
        before = self.state.policies
        if before is None or before.epoch != self.epochs[0]:
            before = Policies.build(self.epochs[0], 0, ())
        version = before.version + 1
        text = b'{"override":null,"retry":{"cap_seconds":%d.5}}' % version
        changed = [DependencyPolicy("core", f"db{each}", version, text) for each in numbers]
        self.state.install_policies(before.with_changes(version, changed, NOON))

    def degrade(self, numbers: set[int]) -> None:
        causes = tuple(replace(CAUSE, what=f"core->{number}") for number in numbers)
        self.state.install_causes(self.state.degradation + 1, causes)

    def restore_backup(self) -> None:
        if len(self.epochs) > 1:
            self.epochs.pop(0)
            self.publish([entry("restored")])

    def bundle(self) -> SignedBundle:
        before = None if self.last is None else self.last.bundle
        collected = collect(self.state, before)
        assert collected is not None
        self.last = sign_bundle(collected, [KEY])
        return self.last


_numbers = st.frozensets(st.integers(1, 6), max_size=4)
_changes: st.SearchStrategy[Callable[[Plane], None]] = st.one_of(
    st.builds(
        lambda names, percent, drilled: (
            lambda plane: plane.publish([entry(str(name), percent) for name in names], drilled)
        ),
        _numbers,
        st.integers(0, 100),
        st.booleans(),
    ),
    *(
        st.builds(lambda numbers, do=do: lambda plane: do(plane, numbers), _numbers)
        for do in (Plane.close_orders, Plane.grant, Plane.register, Plane.set_policies)
    ),
    st.builds(lambda numbers: lambda plane: plane.degrade(numbers), _numbers),
    st.just(Plane.restore_backup),
)


def assert_equal(received: ReceivedBundle, state: State) -> None:
    contents, published = received.contents, state.published
    assert published is not None
    assert contents.snapshot.body == published.body
    assert contents.snapshot.entries == published.entries
    assert contents.snapshot.elements == published.elements
    assert contents.snapshot.orders == published.orders
    assert received.head.publication == published.publication
    assert received.head.snapshot_signature == published.signature
    assert verify(published.signature, contents.snapshot.body, KEYS)
    drills = published.drill_snapshot
    assert (contents.drills is None) == (drills is None)
    if contents.drills is not None and drills is not None:
        assert (contents.drills.marks, contents.drills.drilled) == (drills.marks, drills.drilled)
    assert contents.closed == state.orders.closed
    assert contents.settled == state.orders.settled
    assert contents.tokens == state.tokens
    assert contents.codes == state.codes
    assert contents.owners == state.owners
    if received.head.registrations >= 0:
        assert contents.known == state.known
    if received.head.degradation >= 0:
        assert contents.causes == state.causes
    policies = state.policies
    if policies is None or policies.epoch != published.publication.epoch:
        assert contents.policies is None
    else:
        assert contents.policies is not None
        assert contents.policies.list_all() == policies.list_all()
        for each in ("core", "search"):
            ours, theirs = contents.policies.document_for(each), policies.document_for(each)
            assert (ours.body, ours.etag) == (theirs.body, theirs.etag)


@given(st.lists(st.tuples(_changes, st.lists(st.booleans(), min_size=3, max_size=3)), max_size=12))
def test_relay_that_missed_any_bundles_has_equal_contents(
    steps: list[tuple[Callable[[Plane], None], list[bool]]],
) -> None:
    plane = Plane()
    relays: list[ReceivedBundle | None] = [None, None, None]
    for change, receives in [*steps, (lambda _plane: None, [True] * 3)]:
        change(plane)
        sent = plane.bundle()
        for number, does in enumerate(receives):
            if does:
                before = relays[number]
                bases = {} if before is None else before.signed.parts
                received = apply_event(before, serialize_difference(bases, sent), KEYS)
                relays[number] = received
                assert_equal(received, plane.state)
                assert received.signed == sent
                assert apply_event(None, serialize_full(received.signed), KEYS).signed == sent


def changed_plane() -> Plane:
    """A plane with something in each part."""
    plane = Plane()
    plane.close_orders({1, 2})
    plane.publish([entry("chat"), ENTRY], drilled=True)
    plane.grant({1, 2})
    plane.register({1})
    plane.state.install_policies(Policies.build(EPOCH, 9, [POLICY], NOON))
    plane.degrade({1})
    return plane


def test_difference_holds_only_what_changed() -> None:
    plane = changed_plane()
    before = plane.bundle()
    entries = [entry("chat"), ENTRY, entry("new")]
    plane.publish(entries, drilled=True)

    sent = orjson.loads(serialize_difference(before.parts, plane.bundle()))

    assert sent["parts"].keys() == {"snapshot"}
    assert sent["parts"]["snapshot"]["set"].keys() == {"", "segment:new"}
    assert sent["parts"]["snapshot"]["delete"] == []


def test_unchanged_parts_are_not_built_again() -> None:
    plane = changed_plane()
    before = plane.bundle()
    plane.publish([], drilled=True)

    after = plane.bundle()

    changed = {name for name in after.parts if after.parts[name] is not before.parts[name]}
    assert changed == {"snapshot"}


def test_relay_parses_only_what_changed() -> None:
    plane = changed_plane()
    before = apply_event(None, serialize_full(plane.bundle()), KEYS)
    plane.publish([entry("chat"), ENTRY, entry("new")], drilled=True)

    after = apply_event(before, serialize_difference(before.signed.parts, plane.bundle()), KEYS)

    ours, theirs = before.contents, after.contents
    assert theirs.tokens is ours.tokens
    assert theirs.drills is ours.drills
    assert theirs.policies is ours.policies
    assert theirs.snapshot.entries["segment:chat"] is ours.snapshot.entries["segment:chat"]


def test_bundle_carries_owners_and_roles() -> None:
    received = apply_event(None, serialize_full(Plane().bundle()), KEYS)

    assert received.contents.tokens == {b"relay00001": OWNED}


def test_upstream_of_an_older_release_sends_no_owners() -> None:
    plane = changed_plane()
    collected = plane.bundle().bundle
    parts = {name: part for name, part in collected.parts.items() if name != OWNERS}

    older = apply_event(
        None, serialize_full(sign_bundle(replace(collected, parts=parts), [KEY])), KEYS
    )
    newer = apply_event(older, serialize_difference(older.signed.parts, plane.bundle()), KEYS)

    assert older.contents.owners == NO_OWNERS
    assert newer.contents.owners == plane.state.owners != NO_OWNERS


def test_parts_of_a_later_release_are_ignored() -> None:
    plane = changed_plane()
    collected = plane.bundle().bundle
    parts = {**collected.parts, "news": Part.build({"a": b"1"})}

    received = apply_event(
        None, serialize_full(sign_bundle(replace(collected, parts=parts), [KEY])), KEYS
    )

    assert_equal(received, plane.state)


def test_state_without_tokens_has_no_bundle() -> None:
    state = State()
    state.install_copy(Copy.render(SnapshotVersion(EPOCH, 1, NOON), ()), 0.0)

    assert collect(state, None) is None


@pytest.mark.parametrize("callees", [("core", "db"), ("core", "cache"), ("web", "db")])
def test_policies_that_were_read_again_replace_all(callees: tuple[str, str]) -> None:
    plane = changed_plane()
    some = [DependencyPolicy("core", callee, 10, b"{}") for callee in ("db", "cache")]
    plane.state.install_policies(Policies.build(EPOCH, 10, some, NOON))
    before = apply_event(None, serialize_full(plane.bundle()), KEYS)

    left = DependencyPolicy(*callees, 11, b'{"retry":null}')
    plane.state.install_policies(Policies.build(EPOCH, 11, [left], NOON))
    after = apply_event(before, serialize_difference(before.signed.parts, plane.bundle()), KEYS)

    assert after.contents.policies is not None
    assert after.contents.policies.list_all() == [left]


def test_policies_of_unchanged_callers_are_not_rendered_again() -> None:
    plane = changed_plane()
    policies = Policies.build(
        EPOCH, 10, [DependencyPolicy(each, "db", 10, b"{}") for each in ("core", "web")], NOON
    )
    plane.state.install_policies(policies)
    before = plane.bundle().parts[POLICIES].values
    changed = DependencyPolicy("core", "db", 11, b'{"retry":null}')

    plane.state.install_policies(policies.with_changes(11, [changed], NOON))
    after = plane.bundle().parts[POLICIES].values

    assert after["core->db"] != before["core->db"]
    assert after["web->db"] is before["web->db"]


def test_policies_of_another_epoch_are_left_out() -> None:
    plane = changed_plane()
    plane.restore_backup()

    received = apply_event(None, serialize_full(plane.bundle()), KEYS)

    assert received.head.policies == -1
    assert received.contents.policies is None


Change = Callable[[dict[str, Any]], object]


def _set_value(part: str, key: str, text: str) -> Change:
    return lambda sent: sent["parts"][part]["set"].update({key: text})


def _edit_manifest(old: str, new: str) -> Change:
    return lambda sent: sent.update(manifest=sent["manifest"].replace(old, new))


def _sign_with(key: SigningKey) -> Change:
    def alter(sent: dict[str, Any]) -> None:
        sent["signature"] = sign(SIGNED_PREFIX + sent["manifest"].encode(), [key])

    return alter


@pytest.mark.parametrize(
    ("alter", "reason"),
    [
        (_edit_manifest('"version":3', '"version":4'), "the signature is wrong"),
        (_set_value("tokens", "0000000009", "{}"), "another hash"),
        (_set_value("tokens", "0000000001", "{}"), "another hash"),
        (_set_value("known", "feature:9", ""), "another hash"),
        (_set_value("causes", "", "[]\n"), "more than one line"),
        (lambda sent: sent["parts"]["snapshot"]["set"].pop("segment:chat"), "another hash"),
        (lambda sent: sent["parts"].pop("codes"), "another hash"),
        (lambda sent: sent["parts"]["codes"].update(base="0" * 64), "unknown part"),
        (lambda sent: sent["parts"]["codes"].update(delete=["x"]), "another schema"),
        (lambda sent: sent["parts"].update(codes=[]), "another schema"),
        (lambda sent: sent.pop("signature"), "another schema"),
        (lambda sent: sent.update(signature=""), "there is no signature"),
        (_sign_with(SigningKey(bytes(32))), "unknown key"),
    ],
)
def test_altered_bundle_is_refused(alter: Change, reason: str) -> None:
    sent = orjson.loads(serialize_full(changed_plane().bundle()))
    alter(sent)

    with pytest.raises(InvalidBundle, match=reason):
        apply_event(None, orjson.dumps(sent), KEYS)


@given(st.data())
def test_truncated_bundle_is_refused(data: st.DataObject) -> None:
    sent = serialize_full(changed_plane().bundle())

    with pytest.raises(InvalidBundle):
        apply_event(None, sent[: data.draw(st.integers(0, len(sent) - 1))], KEYS)


def test_signed_bundle_with_invalid_contents_is_refused() -> None:
    bundle = changed_plane().bundle().bundle
    wrong = replace(bundle, head=replace(bundle.head, publication=SnapshotVersion(EPOCH, 9, NOON)))

    with pytest.raises(InvalidBundle, match="another version than the bundle"):
        apply_event(None, serialize_full(sign_bundle(wrong, [KEY])), KEYS)


def test_signed_bundle_without_a_part_is_refused() -> None:
    bundle = changed_plane().bundle().bundle
    parts = {name: part for name, part in bundle.parts.items() if name != "codes"}

    with pytest.raises(InvalidBundle, match="lacks the part codes"):
        apply_event(None, serialize_full(sign_bundle(replace(bundle, parts=parts), [KEY])), KEYS)


def test_replayed_messages_are_refused() -> None:
    plane = changed_plane()
    first = plane.bundle()
    plane.publish([entry("new")])
    second = plane.bundle()
    plane.publish([])
    third = plane.bundle()
    now = apply_event(None, serialize_full(third), KEYS)

    for old in (
        serialize_full(first),
        serialize_difference(first.parts, second),
        serialize_full(second),
    ):
        with pytest.raises(OlderBundle):
            apply_event(now, old, KEYS)
    with pytest.raises(InvalidBundle, match="unknown part"):
        apply_event(now, serialize_difference(second.parts, third), KEYS)


def test_difference_against_another_bundle_is_refused() -> None:
    plane = changed_plane()
    first = apply_event(None, serialize_full(plane.bundle()), KEYS)
    plane.publish([entry("new")], drilled=True)
    second = plane.bundle()
    plane.publish([], drilled=True)

    with pytest.raises(InvalidBundle, match="unknown part"):
        apply_event(first, serialize_difference(second.parts, plane.bundle()), KEYS)


def test_relay_keeps_parts_of_newer_releases_and_serves_them_on() -> None:
    plane = changed_plane()
    bundle = plane.bundle().bundle
    extra = Part.build({"key": b"1"})
    newer = sign_bundle(replace(bundle, parts={**bundle.parts, "later": extra}), [KEY])

    received = apply_event(None, serialize_full(newer), KEYS)

    assert apply_event(None, serialize_full(received.signed), KEYS).signed == newer


def make_publication(version: int = 17, epoch: UUID = EPOCH, seconds: int = 0) -> SnapshotVersion:
    return SnapshotVersion(epoch, version, NOON + timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, ""),
        ({"publication": make_publication(18, seconds=1)}, ""),
        ({"publication": make_publication(16)}, "its version 16 is older than 17"),
        ({"publication": make_publication(17, seconds=1)}, "another time of publication"),
        ({"publication": make_publication(1, THIRD_EPOCH), "revision": 0}, ""),
        ({"publication": make_publication(99, OTHER_EPOCH)}, "its epoch was left"),
        ({"publication": make_publication(18), "revision": 3}, "its revision 3 of the tokens"),
        (
            {
                "publication": make_publication(18),
                "policies": 8,
                "registrations": 1,
                "degradation": -1,
            },
            "",
        ),
        ({"is_kept": True}, "restored from disk"),
        ({"publication": make_publication(18), "is_kept": True}, ""),
    ],
)
def test_bundle_may_follow_only_older_ones(changes: dict[str, Any], reason: str) -> None:
    found = explain_refusal(HEAD, replace(HEAD, **changes))

    assert bool(found) == bool(reason)
    assert reason in found


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({}, set()),
        ({"policies": 8}, {POLICIES}),
        ({"policies": 10, "registrations": 1}, {KNOWN}),
        ({"degradation": -1}, {CAUSES}),
        (
            {"publication": make_publication(1, THIRD_EPOCH), "policies": 1, "registrations": 1},
            set(),
        ),
        ({"publication": make_publication(1, THIRD_EPOCH), "policies": -1}, {POLICIES}),
    ],
)
def test_older_and_unknown_parts_are_not_used(changes: dict[str, Any], parts: set[str]) -> None:
    assert find_older_parts(HEAD, replace(HEAD, **changes)) == parts
