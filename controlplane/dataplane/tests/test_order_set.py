"""Emergency orders in memory: union, withdrawals, closing, epochs, and merged copies."""

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import orjson
import pytest

from controlplane.core.signatures import SigningKey
from controlplane.dataplane.memory.merged_copy import merge_orders
from controlplane.dataplane.memory.order_set import ClosedOrder, OrderSet
from controlplane.dataplane.memory.served_copy import Copy, match_copy, parse_event_id, parse_tags
from switches.emergency.orders import ENGAGE, WITHDRAW, Order, Orderer, hash_ids
from switches.emergency.relay_signatures import sign_order
from switches.snapshot import SnapshotEntry, SnapshotVersion

AT = datetime(2026, 11, 28, 2, 10, tzinfo=UTC)
SECOND = timedelta(seconds=1)
EPOCH = UUID("8b4ccf29-2b0e-4b5c-9c69-1d5f2f3a7a11")
KIM = Orderer("user", "kim", 7)


def order(
    number: int = 1, switch: str = "feature:chat", *, seconds: float = 0, plane: str = "dp-1"
) -> Order:
    return Order(
        id=UUID(int=number),
        action=ENGAGE,
        switch=switch,
        reason="OpenAI 5xx on completions",
        expires_in="24h",
        by=KIM,
        at=AT + timedelta(seconds=seconds),
        plane=plane,
    )


def withdrawal(number: int, withdraws: int, switch: str = "feature:chat") -> Order:
    return Order(
        id=UUID(int=number),
        action=WITHDRAW,
        switch=switch,
        withdraws=UUID(int=withdraws),
        reason="false alarm",
        by=KIM,
        at=AT,
        plane="dp-2",
    )


def closed(*numbers: int, subject: str = "feature:chat") -> dict[UUID, ClosedOrder]:
    return {UUID(int=number): ClosedOrder(AT, subject) for number in numbers}


def published(*entries: SnapshotEntry, version: int = 17) -> Copy:
    return Copy.render(SnapshotVersion(EPOCH, version, AT), entries)


def entry(switch: str = "feature:chat", allow_percent: int = 0) -> SnapshotEntry:
    scope, _, key = switch.partition(":")
    percent = Decimal(allow_percent)
    return SnapshotEntry(switch, scope, key, percent, "salt", "an episode", AT, None, "ramp")


def open_numbers(orders: OrderSet) -> list[int]:
    return [order_id.int for order_id in orders.open]


def test_merging_does_not_depend_on_the_order_of_arrival() -> None:
    news = [order(1), order(2, "segment:a", seconds=-1), withdrawal(3, 1), order(1, seconds=-5)]
    results = {OrderSet().add(each).digest for each in itertools.permutations(news)}
    one_by_one = OrderSet()
    for each in news:
        one_by_one = one_by_one.add([each])
    assert results == {one_by_one.digest}
    assert open_numbers(one_by_one) == [2]


def test_what_is_known_changes_nothing() -> None:
    orders = OrderSet().add([order(1), withdrawal(2, 1)])
    assert orders.add([order(1), withdrawal(2, 1)]) is orders


def test_a_withdrawal_that_arrives_first_wins() -> None:
    assert not OrderSet().add([withdrawal(2, 1)]).add([order(1)]).open


def test_only_the_database_closes_and_closed_orders_stay_known() -> None:
    orders = OrderSet().add([order(1), order(2)]).close(closed(1))
    assert open_numbers(orders) == [2]
    assert UUID(int=1) in orders.orders
    assert open_numbers(orders.add([order(1, seconds=-1)])) == [2]


def test_reads_ask_for_orders_that_were_closed_long_ago() -> None:
    orders = OrderSet().add([order(1), order(2), order(3)]).close(closed(1, 3))
    assert orders.uncertain_ids(AT) == {UUID(int=2)}
    later = AT + timedelta(days=30)
    assert orders.uncertain_ids(later) == {UUID(int=1), UUID(int=2), UUID(int=3)}
    assert orders.forget([UUID(int=1)]).uncertain_ids(later) == {UUID(int=2), UUID(int=3)}


def test_one_id_for_two_switches_blocks_both() -> None:
    chat, finance = order(1), order(1, "segment:finance", plane="dp-2")
    for first, second in ((chat, finance), (finance, chat)):
        orders = OrderSet().add([first]).add([second])
        assert set(orders.by_switch) == {"feature:chat", "segment:finance"}
    assert set(OrderSet().add([chat]).close(closed(1, subject="segment:finance")).by_switch) == {
        "feature:chat"
    }


def test_a_withdrawal_takes_back_the_order_of_its_switch_alone() -> None:
    chat, finance = order(1), order(1, "segment:finance", plane="dp-2")
    withdrawn = withdrawal(2, 1, "segment:finance")
    for first, second in ((chat, finance), (finance, chat)):
        orders = OrderSet().add([first]).add([second]).add([withdrawn])
        assert set(orders.by_switch) == {"feature:chat"}


def test_a_restored_backup_reopens_what_was_engaged_until_then() -> None:
    orders = OrderSet().add([order(1), order(2, "segment:a")])
    orders = orders.close(closed(1) | closed(2, subject="segment:a"))
    after = orders.close({}, {"feature:chat"}.__contains__)
    assert open_numbers(after) == [1]
    assert str(UUID(int=2)) in after.listed_ids(AT).closed
    assert open_numbers(after.close({})) == [1]
    assert not orders.close(orders.closed).open


def test_settled_orders_leave_no_mark_on_the_version() -> None:
    orders = OrderSet().add([order(1), withdrawal(2, 1)])
    closed_both = orders.close(closed(1) | closed(2, subject=str(UUID(int=1))))
    assert closed_both.close({}, lambda _switch: False).hash == ""


def test_snapshots_list_closed_orders_for_a_day_and_withdrawn_ones_until_closed() -> None:
    orders = OrderSet().add([order(1), order(2), withdrawal(3, 2)]).close(closed(1))
    assert orders.listed_ids(AT).closed == (str(UUID(int=1)), str(UUID(int=2)))
    assert orders.listed_ids(AT + timedelta(days=2)).closed == (str(UUID(int=2)),)


def test_orders_of_long_ago_are_forgotten() -> None:
    orders = OrderSet().add([order(1), order(2)]).close(closed(1))
    assert list(orders.forget([UUID(int=1)]).orders) == [UUID(int=2)]
    assert orders.forget([UUID(int=9)]) is orders


def test_a_copy_without_orders_is_served_as_published() -> None:
    copy = published(entry())
    assert merge_orders(copy, OrderSet(), AT, None) is copy


@pytest.mark.parametrize(
    ("present", "reason"),
    [(None, "OpenAI 5xx on completions"), (0, "an episode"), (40, "OpenAI 5xx on completions")],
)
def test_an_order_only_adds_a_block(present: int | None, reason: str) -> None:
    copy = published(*([] if present is None else [entry(allow_percent=present)]))
    merged = merge_orders(copy, OrderSet().add([order(1)]), AT, copy)
    found = merged.entries["feature:chat"]
    assert (found.state, found.reason) == ("engaged", reason)
    assert merged.publication == copy.publication
    document = orjson.loads(merged.body)
    hidden = {} if found.emergency else {"hidden": {str(UUID(int=1)): "feature:chat"}}
    assert document["emergency"] == {"open": [str(UUID(int=1))], "closed": [], **hidden}
    assert document["switches"][0].get("emergency", "") == found.emergency


def test_an_order_stands_over_an_engagement_that_clients_end_by_themselves() -> None:
    ends = replace(entry(), expires_at=AT + SECOND, on_expiry="release")
    merged = merge_orders(published(ends), OrderSet().add([order(1)]), AT, None)
    assert merged.entries["feature:chat"].on_expiry == "hold"


def test_the_earliest_of_several_orders_is_shown() -> None:
    orders = OrderSet().add([order(1), order(2, seconds=-1)])
    merged = merge_orders(published(), orders, AT, None)
    assert merged.entries["feature:chat"].emergency == str(UUID(int=2))
    assert merged.orders.hidden == {str(UUID(int=1)): "feature:chat"}
    assert merged.etag == f'"{EPOCH}.17-{hash_ids(map(str, orders.open))}"'.encode()


def tag(version: int, suffix: str = "") -> bytes:
    return f"{EPOCH}.{version}{suffix}".encode()


@pytest.mark.parametrize("parse", [parse_event_id, lambda mark: parse_tags(b'"%b"' % mark)])
def test_a_client_gets_orders_that_it_lacks_whatever_its_version(parse) -> None:  # type: ignore[no-untyped-def]
    orders = OrderSet().add([order(1)])
    merged = merge_orders(published(), orders, AT, None)
    same = f"-{orders.hash}"
    assert match_copy(parse(tag(17, same)), merged)
    assert match_copy(parse(tag(18, same)), merged)
    assert not match_copy(parse(tag(17)), merged)
    assert not match_copy(parse(tag(18)), merged)
    assert not match_copy(parse(tag(17, "-00000000")), merged)
    assert not match_copy(parse(tag(16, same)), merged)


def test_a_withdrawal_changes_the_validator_of_the_same_version() -> None:
    orders = OrderSet().add([order(1)])
    copies = [
        merge_orders(published(), each, AT, None)
        for each in (OrderSet(), orders, orders.add([withdrawal(2, 1)]))
    ]
    assert len({copy.etag for copy in copies}) == 3
    assert orjson.loads(copies[2].body)["emergency"]["closed"] == [str(UUID(int=1))]
    assert not copies[2].entries


def test_a_client_that_withdrew_from_all_orders_gets_no_event_for_a_new_version() -> None:
    copy = merge_orders(published(version=18), OrderSet().close(closed(1)), AT, None)
    assert copy.orders_hash == ""
    assert match_copy(parse_event_id(tag(18)), copy)


def test_a_withdrawal_by_a_relay_has_no_effect_on_orders_of_others() -> None:
    key = SigningKey.generate()
    of_plane, of_relay = order(1), sign_order(order(2), key)
    of_other = sign_order(order(3), SigningKey.generate())
    orders = [of_plane, of_relay, of_other]
    taken_back = [
        sign_order(withdrawal(10 + number, each.id.int), key) for number, each in enumerate(orders)
    ]

    for given in itertools.permutations(taken_back):
        held = OrderSet().add([*given, *orders])
        assert set(held.withdrawn) == {of_relay.id}
        assert set(held.open) == {of_plane.id, of_other.id}
    assert set(held.add([withdrawal(20, of_other.id.int)]).open) == {of_plane.id}
