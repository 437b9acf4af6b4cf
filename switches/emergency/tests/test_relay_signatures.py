"""Signatures of relays: each binds an order to the relay that accepted it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import orjson
import pytest

from controlplane.core.signatures import SigningKey
from switches.emergency.orders import (
    Order,
    RelaySignature,
    order_document,
    parse_order,
    plan_withdrawal,
)
from switches.emergency.relay_signatures import is_signed_by_relay, sign_order

from .test_orders import AT, ID, KIM, plan

KEY, OTHER_KEY = SigningKey.generate(), SigningKey.generate()


def signed(order: Order, **changes: str | UUID) -> Order:
    assert order.relay is not None
    return replace(order, relay=replace(order.relay, **changes))  # type: ignore[arg-type]


def test_a_signed_order_is_read_back_unchanged() -> None:
    order = sign_order(plan(), KEY)
    assert parse_order(orjson.loads(order.serialized)) == order
    assert is_signed_by_relay(order)
    assert "relay" not in order_document(plan())


def test_the_id_belongs_to_the_relay_and_is_that_of_a_repeated_request() -> None:
    ours, again, theirs = (sign_order(plan(), key) for key in (KEY, KEY, OTHER_KEY))
    assert ours.id == again.id
    assert len({ID, ours.id, theirs.id}) == 3


@pytest.mark.parametrize(
    "forge",
    [
        lambda order: replace(order, reason="another reason, given by nobody"),
        lambda order: replace(order, at=order.at - timedelta(hours=1)),
        lambda order: replace(order, by=replace(KIM, name="amir")),
        lambda order: replace(order, id=ID),
        lambda order: replace(order, relay=None),
        lambda order: signed(order, given_id=UUID(int=2)),
        lambda order: signed(order, key=str(OTHER_KEY.public)),
        lambda order: signed(order, key="not a key"),
        lambda order: signed(order, signature="not base64!"),
        lambda order: replace(order, relay=RelaySignature(str(KEY.public), ID, "AAAA")),
        lambda order: replace(sign_order(plan(), OTHER_KEY), id=order.id),
    ],
)
def test_a_forged_order_is_not_signed(forge: Callable[[Order], Order]) -> None:
    assert not is_signed_by_relay(forge(sign_order(plan(), KEY)))


def withdraw(order: Order, key: SigningKey | None = None) -> Order:
    given = plan_withdrawal(order, "false alarm", id=UUID(int=9), by=KIM, at=AT, plane="dp-2")
    return given if key is None else sign_order(given, key)


def test_a_relay_can_withdraw_its_own_orders_only() -> None:
    ordinary, ours, theirs = plan(), sign_order(plan(), KEY), sign_order(plan(), OTHER_KEY)
    for order in (ordinary, ours, theirs):
        assert withdraw(order).may_withdraw(order)
    assert withdraw(ours, KEY).may_withdraw(ours)
    assert not withdraw(ordinary, KEY).may_withdraw(ordinary)
    assert not withdraw(theirs, KEY).may_withdraw(theirs)
