"""Signatures of copies: made once per published copy, inherited by copies that add blocks."""

import asyncio
import gzip
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID

import orjson
import pytest

from controlplane.core.signatures import PublicKey, SigningKey, sign, verify
from controlplane.dataplane.application import Application
from controlplane.dataplane.memory.merged_copy import merge_orders
from controlplane.dataplane.memory.order_set import ClosedOrder, OrderSet
from controlplane.dataplane.memory.served_copy import Copy, DrillSnapshot
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.storage.saved_snapshot import SavedState
from controlplane.dataplane.sync.snapshot_keeper import restore_state
from controlplane.dataplane.tests.exchange import Exchange
from controlplane.dataplane.tests.served import BEARER, EPOCH, ask, plane
from controlplane.dataplane.tests.test_rehearsal import MARKED, MARKS, drilled
from switches.emergency.orders import Order, Orderer, plan_order
from switches.snapshot import OrderIds, SnapshotVersion
from switches.tests.snapshots import make_entry

SNAPSHOT, STREAM = "/api/v1/snapshot", "/api/v1/snapshot/stream"
HEADER = "switchgear-signature"
KEY, NEW_KEY = SigningKey(bytes(range(32))), SigningKey(bytes(range(1, 33)))
AT = datetime(2026, 11, 28, 2, 10, tzinfo=UTC)
ORDER_ID = UUID(int=1)
KEY_SIGNS = partial(sign, keys=[KEY])
SWITCHES = [make_entry(f"feature:switch-{number}") for number in range(30)]


class CountingKey(SigningKey):
    """A key that counts what it signs."""

    signed = 0

    def sign(self, content: bytes) -> bytes:
        CountingKey.signed += 1
        return super().sign(content)


def verify_by(key: SigningKey, header: str, content: bytes) -> PublicKey:
    return verify(header, content, {key.public.id: key.public})


def make_order(switch: str = "feature:chat") -> Order:
    by = Orderer("user", "kim", 7)
    request = {"switch": switch, "reason": "OpenAI 5xx on completions"}
    return plan_order(request, id=ORDER_ID, by=by, at=AT, plane="dp-1")


def unsigned_copy(**fields) -> Copy:
    return Copy.render(SnapshotVersion(EPOCH, 18, AT), SWITCHES, **fields)


def signed_copy(**fields) -> Copy:
    copy = unsigned_copy(**fields)
    return copy.with_signature(KEY_SIGNS(copy.body))


def signed_plane(**fields) -> Plane:
    made = plane()
    made.state.install_keys([KEY], ())
    made.state.install_copy(unsigned_copy(**fields), made.state.now())
    return made


def test_answers_with_a_body_carry_its_signature_and_304_does_not() -> None:
    served = signed_plane()
    plain = {**BEARER, "Accept-Encoding": "identity"}

    full = ask(served, "GET", SNAPSHOT, plain)

    verify_by(KEY, full.headers[HEADER], full.content)
    assert ask(served, "HEAD", SNAPSHOT, plain).headers[HEADER] == full.headers[HEADER]
    known = ask(served, "GET", SNAPSHOT, {**plain, "If-None-Match": full.headers["etag"]})
    assert known.status_code == 304
    assert HEADER not in known.headers


def test_the_gzip_form_carries_the_signature_of_the_plain_body() -> None:
    async def run() -> None:
        headers = {**BEARER, "Accept-Encoding": "gzip"}
        async with Exchange(Application(signed_plane()), SNAPSHOT, headers) as answer:
            assert await answer.receive_status() == 200
            assert answer.headers["content-encoding"] == "gzip"
            verify_by(KEY, answer.headers[HEADER], gzip.decompress(await answer.part()))

    asyncio.run(run())


def test_events_have_the_signature_before_the_data() -> None:
    event = b"".join(signed_copy().event)
    names = [line.partition(b":")[0] for line in event.rstrip(b"\n").split(b"\n")]
    fields = dict(line.split(b": ", 1) for line in event.rstrip(b"\n").split(b"\n"))

    assert names == [b"id", b"event", b"signature", b"data"]
    verify_by(KEY, fields[b"signature"].decode(), fields[b"data"])


def test_without_a_key_nothing_about_signatures_is_sent() -> None:
    served = plane("feature:chat")
    served.state.add_orders([make_order("feature:other")])

    response = ask(served, "GET", SNAPSHOT, BEARER)

    assert HEADER not in response.headers
    assert "signed" not in response.json()
    assert served.state.copy is not None
    assert b"signature:" not in served.state.copy.event[0]


def test_a_copy_with_orders_has_the_signed_document_as_text() -> None:
    published = signed_copy()

    merged = merge_orders(published, OrderSet().add([make_order()]), AT, None)

    document = orjson.loads(merged.body)
    assert "feature:chat" in merged.entries
    assert document["signed"].encode() == published.body == merged.signed_body
    assert merged.signature == published.signature
    verify_by(KEY, merged.signature, document["signed"].encode())
    assert b"signature: " + merged.signature.encode() in merged.event[0]


def test_a_drill_copy_with_orders_has_the_published_document_as_text() -> None:
    served = signed_plane(drill_snapshot=DrillSnapshot(MARKS, [drilled()]))
    served.state.add_orders([make_order()])
    assert served.state.published is not None

    response = ask(served, "GET", SNAPSHOT, MARKED)

    ids = {each["id"] for each in response.json()["switches"]}
    assert {"segment:finance", "feature:chat"} <= ids
    assert response.json()["signed"].encode() == served.state.published.body
    verify_by(KEY, response.headers[HEADER], response.json()["signed"].encode())


def test_each_published_copy_is_signed_once_whatever_is_served_of_it() -> None:
    served = plane()
    served.state.install_keys([CountingKey(KEY.raw)], ())
    CountingKey.signed = 0
    copy = unsigned_copy(drill_snapshot=DrillSnapshot(MARKS, [drilled()]))
    served.state.install_copy(copy, served.state.now())
    served.state.add_orders([make_order()])

    for headers in (BEARER, MARKED, BEARER, MARKED):
        assert ask(served, "GET", SNAPSHOT, headers).status_code == 200

    assert CountingKey.signed == 1


def test_a_published_copy_is_served_verbatim_after_its_closed_orders_left_the_list() -> None:
    orders = OrderSet().close({ORDER_ID: ClosedOrder(AT, "feature:chat")})
    published = signed_copy(orders=orders.listed_ids(AT))
    assert published.orders == OrderIds((), (str(ORDER_ID),))

    assert merge_orders(published, orders, AT + timedelta(days=2), None) is published


def test_orders_that_a_restored_backup_lacks_are_in_the_signed_document() -> None:
    served = signed_plane()
    state = served.state
    state.add_orders([make_order()])
    state.install_copy(
        unsigned_copy(), state.now(), closed={ORDER_ID: ClosedOrder(AT, "feature:chat")}
    )
    restored = SnapshotVersion(UUID(int=9), 3, AT)
    copy = Copy.render(restored, SWITCHES, orders=state.list_closed({}))

    state.install_copy(copy, state.now(), closed={})

    assert state.copy is state.published
    assert orjson.loads(copy.body)["emergency"]["closed"] == [str(ORDER_ID)]


def test_bytes_signed_elsewhere_are_served_verbatim() -> None:
    signed = signed_copy()
    body = signed.body.replace(b"{", b"{ ", 1)

    copy = Copy.render(
        signed.publication,
        signed.entries.values(),
        elements=signed.elements,
        body=body,
        signature=KEY_SIGNS(body),
    )

    assert copy.body is body
    assert copy.signed_body is body
    assert (b"switchgear-signature", KEY_SIGNS(body).encode()) in copy.description
    assert merge_orders(copy, OrderSet().add([make_order()]), AT, None).signature == copy.signature


def test_restored_copies_are_signed() -> None:
    state = Plane().state
    state.install_keys([KEY], ())
    saved = SavedState(
        publication=SnapshotVersion(EPOCH, 18, AT),
        entries=tuple(SWITCHES),
        tokens={},
        revision=1,
        known=frozenset(),
        registrations=1,
        left_epochs=frozenset(),
        confirmed_at=AT,
        settled=frozenset({ORDER_ID}),
    )

    restore_state(state, saved)

    assert state.copy is state.published
    assert state.copy is not None
    verify_by(KEY, state.copy.signature, state.copy.body)


@pytest.mark.parametrize("orders", [[], [make_order()]], ids=["published", "merged"])
def test_a_new_key_signs_the_present_copy_again_without_another_event(orders: list[Order]) -> None:
    served = signed_plane()
    state = served.state
    state.add_orders(orders)

    async def run() -> None:
        async with Exchange(Application(served), STREAM, BEARER) as stream:
            await stream.receive_status()
            await stream.part()
            assert b"snapshot" in await stream.part()
            before = state.copy
            state.install_keys([NEW_KEY, KEY], ())
            assert state.copy is not None
            assert before is not None
            assert state.copy.etag == before.etag
            assert state.tokens is not None
            state.install_tokens(2, dict(state.tokens))  # Wakes the stream.
            with pytest.raises(TimeoutError):
                await stream.part(0.15)

    asyncio.run(run())

    response = ask(served, "GET", SNAPSHOT, BEARER)
    text = response.json().get("signed")
    content = response.content if text is None else text.encode()
    for key in (NEW_KEY, KEY):
        verify_by(key, response.headers[HEADER], content)
