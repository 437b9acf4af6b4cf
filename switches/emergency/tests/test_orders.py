"""Orders: validation of requests, and documents that are read back unchanged."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import orjson
import pytest

from controlplane.core.errors import InvalidInput
from switches.emergency.orders import (
    Order,
    Orderer,
    hash_ids,
    order_document,
    parse_order,
    plan_order,
    plan_withdrawal,
)

AT = datetime(2026, 11, 28, 2, 10, tzinfo=UTC)
KIM = Orderer("user", "kim", 7)
ID = UUID(int=1)
REQUEST = {"switch": "feature:chat", "reason": "OpenAI 5xx on completions"}


def plan(**changes: object) -> Order:
    return plan_order({**REQUEST, **changes}, id=ID, by=KIM, at=AT, plane="dp-1")


def test_an_order_has_the_default_expiry_and_holds() -> None:
    order = plan()
    assert order.expires_in == "24h"
    assert (order.expiry.expires_at, order.expiry.on_expiry) == (AT + timedelta(hours=24), "hold")
    entry = order.entry
    assert (entry.id, entry.state, entry.emergency) == ("feature:chat", "engaged", str(ID))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("switch", "chat"),
        ("switch", "global:chat"),
        ("switch", "feature:" + "x" * 121),
        ("switch", 7),
        ("reason", ""),
        ("reason", "help"),
        ("reason", None),
        ("reason", "OpenAI 5xx \u202e on completions"),
        ("expires_in", "31d"),
        ("expires_in", 24),
        ("expires_in", "0h"),
    ],
)
def test_a_wrong_field_is_named(field: str, value: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        plan(**{field: value})
    assert list(refused.value.errors) == [field]


def test_every_wrong_field_is_named() -> None:
    with pytest.raises(InvalidInput) as refused:
        plan_order({}, id=ID, by=KIM, at=AT, plane="dp-1")
    assert sorted(refused.value.errors) == ["reason", "switch"]


@pytest.mark.parametrize("switch", ["feature:chat", "global:all"])
@pytest.mark.parametrize("expires_in", ["90s", "30d", "permanent"])
def test_a_document_is_read_back_unchanged(switch: str, expires_in: str) -> None:
    order = plan(switch=switch, expires_in=expires_in, reason="결제 오류 INC-4411")
    assert parse_order(orjson.loads(order.serialized)) == order


def test_a_withdrawal_is_read_back_and_names_its_order() -> None:
    withdrawal = plan_withdrawal(
        plan(), "It was a false alarm", id=UUID(int=2), by=KIM, at=AT, plane="dp-2"
    )
    assert withdrawal.withdraws == ID
    assert parse_order(orjson.loads(withdrawal.serialized)) == withdrawal


@pytest.mark.parametrize(
    "changes",
    [
        {"action": "release"},
        {"id": "00000000000000000000000000000001"},
        {"order": str(UUID(int=3))},
        {"action": "withdraw"},
        {"on_expiry": "release"},
        {"switch": "feature:"},
        {"by": {"type": "system", "name": "kim", "id": 7}},
        {"by": {"type": "user", "name": "kim", "id": True}},
        {"at": "yesterday"},
        {"reason": "x" * 2001},
        {"plane": ""},
        {"expires_in": "31d"},
        {"expires_in": None},
    ],
)
def test_a_malformed_document_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError, LookupError)):
        parse_order({**order_document(plan()), **changes})


def test_a_request_sent_to_two_planes_is_recognized() -> None:
    other = plan_order(REQUEST, id=ID, by=KIM, at=AT + timedelta(seconds=1), plane="dp-2")
    assert plan().request == other.request
    assert plan().request != plan(expires_in="4h").request


def test_the_hash_of_ids_does_not_depend_on_their_order() -> None:
    assert hash_ids(["b", "a"]) == hash_ids(["a", "b"]) != hash_ids(["a"])
    assert hash_ids([]) == ""
    assert len(hash_ids(["a"])) == 8
