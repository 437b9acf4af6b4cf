"""A relay that lies can add blocks, and take back its own; it can't release anything else."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import httpx
import orjson
import pytest

from controlplane.core.protocol import RELAY_ORDERS, max_body_bytes
from controlplane.core.signatures import SigningKey
from controlplane.dataplane.config import Config
from controlplane.dataplane.emergency.exchange_messages import (
    ExchangeReply,
    ExchangeRequest,
    Sender,
)
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.storage.order_journal import SIGNED_ORDER, order_key
from controlplane.dataplane.tests.order_relays import RELAY, RELAY_BEARER
from controlplane.dataplane.tests.served import BEARER, ask, credential, plane
from controlplane.dataplane.tests.test_order_set import order, withdrawal
from switches.emergency.orders import Order
from switches.emergency.relay_signatures import sign_order

KEY, OTHER_KEY = SigningKey.generate(), SigningKey.generate()
ORDER_KEY = order_key("a secret")


def make_plane(folder: Path) -> Plane:
    made = plane("segment:finance")
    config = Config(
        *("postgresql://", None, "redis://"),
        folder=folder,
        plane="dp-1",
        order_keys=(ORDER_KEY,),
    )
    made.emergency_orders.configure(config)
    tokens = {**(made.state.tokens or {}), b"relay00001": credential(RELAY, "relay")}
    made.state.install_tokens(2, tokens)
    return made


def send(
    served: Plane, *texts: str, listing: Sequence[str] | None = None, name: str = "eu-1"
) -> ExchangeReply:
    sender = Sender(plane=name, process="f" * 32, digest="0" * 64)
    given = None if listing is None else tuple(listing)
    body = ExchangeRequest(sender=sender, orders=texts, listing=given).serialize()
    response = post(served, body)
    assert response.status_code == 200
    return ExchangeReply.parse(response.content)


def post(served: Plane, body: bytes, headers: dict[str, str] = RELAY_BEARER) -> httpx.Response:
    return ask(served, "POST", RELAY_ORDERS, headers, content=body)


def text_of(given: Order) -> str:
    return given.serialized.decode()


def test_a_signed_order_is_stored_and_orders_of_others_are_offered(tmp_path: Path) -> None:
    served, given = make_plane(tmp_path), sign_order(order(1), KEY)
    served.state.add_orders([order(7, "feature:mail")])

    reply = send(served, text_of(given), listing=[])

    assert reply.stored == (given.id,)
    assert served.state.orders.open[given.id] == given
    offered = {orjson.loads(text)["id"] for text in reply.orders}
    assert offered == {str(given.id), str(order(7).id)}
    assert served.emergency_orders.holders(given.id) == {"dp-1"}


@pytest.mark.parametrize(("headers", "status"), [({}, 401), (BEARER, 403)])
def test_without_the_scope_relay_nothing_is_accepted(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    served = make_plane(tmp_path)
    assert post(served, b"{}", headers).status_code == status
    assert not served.state.orders.orders


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"plane": "eu-1"}', b"\xff" * 100])
def test_malformed_messages_are_refused(tmp_path: Path, body: bytes) -> None:
    served = make_plane(tmp_path)
    assert post(served, body).status_code == 400
    assert max_body_bytes(RELAY_ORDERS) == 4 * 1024 * 1024
    assert post(served, b" " * (4 * 1024 * 1024 + 1)).status_code == 413


@pytest.mark.parametrize(
    "forge",
    [
        lambda: text_of(order(1)),
        lambda: SIGNED_ORDER.sign(order(1), ORDER_KEY).decode(),
        lambda: text_of(replace(sign_order(order(1), KEY), reason="nobody gave this reason")),
        lambda: text_of(replace(sign_order(order(1), KEY), id=order(1).id)),
        lambda: "{}",
        lambda: "7",
    ],
)
def test_an_order_that_no_relay_has_signed_is_refused(
    tmp_path: Path, forge: Callable[[], str]
) -> None:
    served, valid = make_plane(tmp_path), sign_order(order(2, "feature:mail"), KEY)

    reply = send(served, forge(), text_of(valid))

    assert reply.stored == (valid.id,)
    assert list(served.state.orders.orders) == [valid.id]


@pytest.mark.parametrize(
    "accepted", [order(1), sign_order(order(1), OTHER_KEY)], ids=["data plane", "other relay"]
)
def test_a_withdrawal_by_a_relay_does_not_release_the_order_of_another(
    tmp_path: Path, accepted: Order
) -> None:
    served = make_plane(tmp_path)
    served.state.add_orders([accepted])
    forged = replace(withdrawal(5, 1), withdraws=accepted.id)

    send(served, text_of(sign_order(forged, KEY)), text_of(forged))

    assert list(served.state.orders.open) == [accepted.id]
    assert served.state.copy is not None
    assert served.state.copy.entries["feature:chat"].state == "engaged"


def test_a_copy_of_an_order_of_another_relay_does_not_replace_it(tmp_path: Path) -> None:
    """An earlier copy by someone without the right would be refused, and end the block."""
    served, accepted = make_plane(tmp_path), sign_order(order(1), OTHER_KEY)
    send(served, text_of(accepted))
    earlier = replace(accepted, at=accepted.at - timedelta(hours=1), reason="forged by a relay")

    for forged in (earlier, sign_order(replace(earlier, id=order(1).id, relay=None), KEY)):
        send(served, text_of(forged))

    assert served.state.orders.open[accepted.id] == accepted


def test_a_relay_does_not_claim_that_others_hold_an_order(tmp_path: Path) -> None:
    served, given = make_plane(tmp_path), sign_order(order(1), KEY)

    send(served, text_of(given), listing=[], name="dp-2")

    assert served.emergency_orders.holders(given.id) == {"dp-1"}
    assert served.peers.count_planes() == 1


def test_more_than_five_thousand_orders_of_relays_are_not_accepted(tmp_path: Path) -> None:
    served = make_plane(tmp_path)
    many = [sign_order(order(number, f"feature:f{number}"), KEY) for number in range(1, 5001)]
    served.state.add_orders(many)
    last = sign_order(order(6000, "feature:last"), KEY)

    assert send(served, text_of(last), text_of(many[0])).stored == ()
    assert last.id not in served.state.orders.orders
    served.state.add_orders([order(7, "feature:mail")])  # Data planes are not limited by it.
    assert order(7).id in served.state.orders.open


def test_a_relay_whose_token_is_revoked_is_refused(tmp_path: Path) -> None:
    served = make_plane(tmp_path)
    tokens = dict(served.state.tokens or {})
    del tokens[b"relay00001"]
    served.state.install_tokens(3, tokens)

    assert post(served, b"{}").status_code == 401
