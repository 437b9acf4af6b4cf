"""Only data planes exchange orders: forged, altered, repeated and huge messages add nothing."""

import asyncio
import hmac
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from controlplane.core.protocol import EXCHANGE, max_body_bytes
from controlplane.dataplane.application import Application
from controlplane.dataplane.config import Config
from controlplane.dataplane.emergency import exchange_messages as messages
from controlplane.dataplane.emergency.exchange_messages import (
    REPLY,
    REQUEST,
    ExchangeReply,
    ExchangeRequest,
    InvalidMessage,
    Sender,
    Stamp,
)
from controlplane.dataplane.memory.order_set import ClosedOrder, OrderSet
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.storage.order_journal import SIGNED_ORDER, order_key
from controlplane.dataplane.tests.served import plane
from controlplane.dataplane.tests.test_order_set import AT, order, withdrawal
from switches.emergency.orders import Order

(KEYS,) = messages.peer_keys([order_key("a secret")])
(OTHER,) = messages.peer_keys([order_key("another secret")])
NONCE = b"0123456789abcdef" * 2
SENDER = Sender(plane="dp-2", process="f" * 32, digest="0" * 64)


def make_plane(folder: Path) -> Plane:
    made = plane("segment:finance")
    config = Config(
        *("postgresql://", None, "redis://"),
        folder=folder,
        plane="dp-1",
        order_keys=(KEYS.order,),
    )
    made.emergency_orders.configure(config)
    made.peers.configure(config.plane, config.order_keys, ())
    return made


def sign(*orders: Order, key: bytes = KEYS.order) -> tuple[str, ...]:
    return tuple(SIGNED_ORDER.sign(each, key).decode() for each in orders)


def body_of(*orders: str, listing: Sequence[str] | None = None) -> bytes:
    given = None if listing is None else tuple(listing)
    return ExchangeRequest(sender=SENDER, orders=orders, listing=given).serialize()


def stamp_of(served: Plane, body: bytes, *, key: bytes = KEYS.message, ahead: float = 0) -> bytes:
    at = served.state.unix() + ahead
    return Stamp.make(REQUEST, body, key, at=at, nonce=NONCE).header


def post(served: Plane, body: bytes, header: bytes | None) -> httpx.Response:
    async def posted() -> httpx.Response:
        transport = httpx.ASGITransport(Application(served))
        headers = {} if header is None else {"Switchgear-Peer": header.decode()}
        async with httpx.AsyncClient(transport=transport, base_url="http://dp-1") as client:
            return await client.post(EXCHANGE, content=body, headers=headers)

    return asyncio.run(posted())


def test_a_signed_message_adds_its_orders_and_has_a_signed_answer(tmp_path: Path) -> None:
    served = make_plane(tmp_path)
    body = body_of(*sign(order(1)), listing=[])

    response = post(served, body, stamp_of(served, body))

    assert response.status_code == 200
    stamp = Stamp.parse(response.headers["switchgear-peer"].encode())
    assert stamp.find_key(REPLY, [KEYS]) == KEYS
    assert stamp.repeats(NONCE)
    assert stamp.covers(response.content)
    reply = ExchangeReply.parse(response.content)
    assert (reply.sender.plane, reply.stored) == ("dp-1", (order(1).id,))
    assert reply.orders == sign(order(1))  # The listing is empty.
    assert list(served.state.orders.open.values()) == [order(1)]
    assert served.emergency_orders.holders(order(1).id) == {"dp-1"}


@pytest.mark.parametrize("size", [100, 10_000_000])
@pytest.mark.parametrize(
    "header",
    [None, b"", b"t=1", b"t=1, n=x, b=y, v1=z", b"t=" + b"9" * 1000],
    ids=["none", "empty", "short", "letters", "long"],
)
def test_a_stranger_is_refused_whatever_the_body(
    tmp_path: Path, header: bytes | None, size: int
) -> None:
    served = make_plane(tmp_path)

    response = post(served, b"x" * size, header)

    assert response.status_code == 401
    assert not served.state.orders.orders


def test_another_key_or_an_order_key_does_not_sign_messages(tmp_path: Path) -> None:
    served = make_plane(tmp_path)
    body = body_of(*sign(order(1)))

    for key in (OTHER.message, KEYS.order, b""):
        response = post(served, body, stamp_of(served, body, key=key))
        assert response.status_code == 401
        assert "stamp" not in response.json()  # Nothing that a stranger could use.
    assert not served.state.orders.orders


def test_an_altered_body_is_refused(tmp_path: Path) -> None:
    served = make_plane(tmp_path)
    signed = body_of(*sign(order(1)))
    altered = signed.replace(b"dp-2", b"dp-3")

    assert post(served, altered, stamp_of(served, signed)).status_code == 401
    assert not served.state.orders.orders


def test_a_reply_is_no_request(tmp_path: Path) -> None:
    served = make_plane(tmp_path)
    body = body_of(*sign(order(1)))
    reply = Stamp.make(REPLY, body, KEYS.message, at=served.state.unix(), nonce=NONCE).header

    assert post(served, body, reply).status_code == 401


@pytest.mark.parametrize("ahead", [-3600, -61, 61, 3600])
def test_an_old_message_is_refused_with_the_signed_time(tmp_path: Path, ahead: float) -> None:
    served = make_plane(tmp_path)
    body = body_of(*sign(order(1)))

    response = post(served, body, stamp_of(served, body, ahead=ahead))

    assert response.status_code == 401
    stamp = Stamp.parse(response.json()["stamp"].encode())
    assert stamp.find_key(REPLY, [KEYS]) == KEYS
    assert stamp.repeats(NONCE)
    assert abs(stamp.at - served.state.unix()) < 2
    assert not served.state.orders.orders


def test_a_repeated_message_changes_nothing_and_reopens_no_closed_order(tmp_path: Path) -> None:
    served = make_plane(tmp_path)
    body = body_of(*sign(order(1)))
    header = stamp_of(served, body)
    post(served, body, header)
    copy = served.state.copy

    assert post(served, body, header).status_code == 200
    assert served.state.copy is copy
    assert served.state.published is not None
    served.state.install_copy(
        served.state.published, 0.0, {order(1).id: ClosedOrder(AT, order(1).subject)}
    )
    assert post(served, body, header).status_code == 200
    assert not served.state.orders.open
    assert served.state.copy is not None
    assert "feature:chat" not in served.state.copy.entries


def test_orders_with_invalid_signatures_are_left_out_and_the_others_kept(tmp_path: Path) -> None:
    served = make_plane(tmp_path)
    (good,) = sign(order(1))
    (forged,) = sign(order(2), key=OTHER.order)
    by_message_key = sign(order(3), key=KEYS.message)[0]
    (real,) = sign(order(4, "feature:mail"))
    altered = real.replace("feature:mail", "global:all")
    body = body_of(forged, altered, by_message_key, "", "\N{SLIGHTLY SMILING FACE}", good)

    response = post(served, body, stamp_of(served, body))

    assert ExchangeReply.parse(response.content).stored == (order(1).id,)
    assert list(served.state.orders.orders) == [order(1).id]


def test_nothing_in_a_message_closes_or_releases_an_order(tmp_path: Path) -> None:
    served = make_plane(tmp_path)
    served.state.add_orders([order(1)])
    content = {
        **orjson.loads(body_of()),
        "closed": [str(order(1).id)],
        "emergency": {"closed": [str(order(1).id)]},
        "forget": True,
    }
    body = orjson.dumps(content)

    assert post(served, body, stamp_of(served, body)).status_code == 200
    assert order(1).id in served.state.orders.open


@pytest.mark.parametrize(
    "content",
    [
        b"", b"[]", b"null", b'{"plane":', b"\xff",
        orjson.dumps({"plane": "", "process": "f" * 32, "digest": "0" * 64, "orders": []}),
        orjson.dumps({"plane": "x" * 121, "process": "f" * 32, "digest": "0" * 64, "orders": []}),
        orjson.dumps({"plane": "dp-2", "process": "f" * 32, "digest": "0" * 64, "orders": "abc"}),
        orjson.dumps({"plane": "dp-2", "process": "f" * 32, "digest": "0" * 64, "orders": [1]}),
        orjson.dumps({"plane": "dp-2", "process": 7, "digest": "0" * 64, "orders": []}),
        orjson.dumps({"plane": "dp-2", "process": "f" * 32, "digest": "0", "orders": []}),
        orjson.dumps({**orjson.loads(body_of()), "listing": ["not a listed order"]}),
    ],
)  # fmt: skip
def test_a_malformed_message_is_a_400(tmp_path: Path, content: bytes) -> None:
    served = make_plane(tmp_path)

    assert post(served, content, stamp_of(served, content)).status_code == 400


def test_a_body_above_the_limit_is_refused_even_if_signed(tmp_path: Path) -> None:
    served = make_plane(tmp_path)
    body = body_of("x" * 10_000_000)

    assert max_body_bytes(EXCHANGE) == 4 * 1024 * 1024
    assert post(served, body, stamp_of(served, body)).status_code == 413


def test_only_post_is_allowed_and_a_plane_without_keys_refuses(tmp_path: Path) -> None:
    async def get() -> httpx.Response:
        transport = httpx.ASGITransport(Application(make_plane(tmp_path)))
        async with httpx.AsyncClient(transport=transport, base_url="http://dp-1") as client:
            return await client.get(EXCHANGE)

    assert asyncio.run(get()).status_code == 405
    body = body_of()
    unconfigured = plane()
    assert post(unconfigured, body, stamp_of(unconfigured, body)).status_code == 503


def test_a_listing_tells_what_either_side_lacks() -> None:
    held = OrderSet().add([order(1), order(2, "feature:mail"), withdrawal(3, 1)])
    held = held.close({order(2).id: ClosedOrder(AT, "feature:mail")})
    theirs = [order(1), order(2, "feature:mail"), order(4, "feature:new")]

    difference = messages.compare_listing(messages.list_orders(theirs), held)

    assert difference.offered == [withdrawal(3, 1)]
    assert difference.wanted == [order(4).id]  # Not the closed one, which is known.


def test_of_an_order_whose_content_differs_both_planes_send_theirs() -> None:
    ours, theirs = order(1), order(1, seconds=-5, plane="dp-2")

    difference = messages.compare_listing(messages.list_orders([theirs]), OrderSet().add([ours]))

    assert (difference.offered, difference.wanted) == ([ours], [order(1).id])


def test_batches_of_orders_stay_below_the_limit_and_have_at_least_one() -> None:
    long = [order(n) for n in range(1, 2001)]
    batches: list[tuple[str, ...]] = []
    rest: list[Any] = long
    while rest:
        batch, number = messages.write_batch(rest, lambda each: sign(each)[0])
        assert number == len(batch) > 0
        assert len(orjson.dumps(batch)) < messages.MAX_BATCH_BYTES + 10_000
        batches.append(batch)
        rest = rest[number:]

    assert [text for batch in batches for text in batch] == [*sign(*long)]


def test_keys_of_messages_differ_from_those_of_orders_and_between_secrets() -> None:
    assert len({*KEYS, *OTHER}) == 4
    assert KEYS.message == hmac.digest(KEYS.order, b"switchgear/emergency/peer/1", "sha256")


@pytest.mark.parametrize("text", [b"", b"t=-1", b"\xff" * 200])
def test_a_header_of_another_form_is_invalid(text: bytes) -> None:
    with pytest.raises(InvalidMessage):
        Stamp.parse(text)
