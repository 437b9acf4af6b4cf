"""Emergency orders of relays: at once upstream, and from there to everyone; also after a cut."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from controlplane.dataplane.memory.order_set import ClosedOrder
from controlplane.dataplane.storage.order_journal import OrderJournal, order_key
from controlplane.dataplane.tests.lines import wait_until
from controlplane.dataplane.tests.neighbors import ORDERS
from controlplane.dataplane.tests.order_relays import RelayNeighbor, region, withdraw
from controlplane.dataplane.tests.served import copy, plane

pytestmark = pytest.mark.services


def test_an_order_at_a_relay_reaches_its_upstream_before_the_answer(tmp_path: Path) -> None:
    with region(tmp_path) as made:
        wait_until(lambda: made.eu.plane.state.exchanges["succeeded"] > 0, 5)

        response = made.eu.order()

        assert response.status_code == 201
        content = response.json()
        assert (content["accepted_by"], content["planes"]) == (["dp-1", "eu-1"], 2)
        assert content["plane"] == "eu-1"
        assert made.eu.serves()
        assert made.plane.serves()
        (order,) = made.plane.plane.state.orders.open.values()
        assert order == made.eu.plane.state.orders.open[order.id]
        assert str(order.id) == content["id"]
        made.us.hear_upstream()
        assert made.us.serves()


def test_an_order_behind_two_relays_reaches_the_data_plane(tmp_path: Path) -> None:
    with region(tmp_path) as made:
        assert made.behind.order().status_code == 201

        wait_until(made.plane.serves, 10)
        (order,) = made.plane.plane.state.orders.open.values()
        assert order.plane == "eu-2"
        assert withdraw(made.behind, str(order.id)).status_code == 201
        wait_until(lambda: not made.plane.serves(), 10)
        assert not made.eu.serves()


def test_a_relay_that_is_cut_off_accepts_orders_and_passes_them_on_later(tmp_path: Path) -> None:
    with region(tmp_path) as made:
        made.eu.line.cut()

        response = made.eu.order()

        assert response.status_code == 201
        assert response.json()["accepted_by"] == ["eu-1"]
        assert made.eu.serves()
        assert not made.plane.serves()
        made.eu.line.mend()
        wait_until(made.plane.serves, 10)
        assert made.eu.serves()


def test_an_order_survives_the_restart_of_a_relay_that_is_cut_off(tmp_path: Path) -> None:
    with region(tmp_path) as made:
        made.eu.line.cut()
        order_id = made.eu.order().json()["id"]
        made.eu.stop()
        (file,) = (tmp_path / "eu-1" / "emergency").glob("*.order")
        assert file.stat().st_mode & 0o077 == 0

        again = RelayNeighbor(made.eu.loop, "eu-1", tmp_path / "eu-1", made.plane)
        again.start_relay()

        try:
            assert again.serves()
            wait_until(made.plane.serves, 10)
            assert [*map(str, made.plane.plane.state.orders.open)] == [order_id]
            journal = OrderJournal(tmp_path / "eu-1", (order_key(again.secret),))
            assert [str(order.id) for order in journal.load()] == [order_id]
        finally:
            again.stop()


def test_an_order_and_its_withdrawal_during_a_cut_arrive_together(tmp_path: Path) -> None:
    with region(tmp_path) as made:
        made.eu.line.cut()
        order_id = made.eu.order().json()["id"]
        assert withdraw(made.eu, order_id).status_code == 201
        assert not made.eu.serves()

        made.eu.line.mend()

        wait_until(lambda: len(made.plane.plane.state.orders.orders) == 2, 10)
        assert not made.plane.serves()


def test_a_withdrawal_passes_in_both_directions(tmp_path: Path) -> None:
    with region(tmp_path) as made:
        first = made.eu.order("feature:chat").json()["id"]
        wait_until(lambda: made.plane.serves("feature:chat"), 10)
        assert withdraw(made.eu, first).status_code == 201
        wait_until(lambda: not made.plane.serves("feature:chat"), 10)

        second = made.eu.order("feature:mail").json()["id"]
        wait_until(lambda: made.plane.serves("feature:mail"), 10)
        assert withdraw(made.plane, second).status_code == 201
        made.eu.hear_upstream()
        assert not made.eu.serves("feature:mail")


def test_a_relay_does_not_withdraw_the_order_of_another_plane(tmp_path: Path) -> None:
    with region(tmp_path) as made:
        order_id = made.plane.order().json()["id"]
        made.eu.hear_upstream()
        assert made.eu.serves()

        response = withdraw(made.eu, order_id)

        assert response.status_code == 409
        assert "given on dp-1" in response.json()["detail"]
        assert made.eu.serves()


def test_a_repeated_request_is_one_order_and_its_id_withdraws_it(tmp_path: Path) -> None:
    with region(tmp_path) as made:
        given = "0b7ac1de-3f0e-4a52-9d1b-6f0a5f6f7a01"
        one, again = (made.eu.order(id=given).json()["id"] for _ in range(2))
        assert one == again != given
        assert made.eu.order("feature:mail", id=given).status_code == 409

        assert withdraw(made.eu, given).status_code == 201


def test_an_order_that_the_database_closed_is_dropped_and_not_sent_again(tmp_path: Path) -> None:
    with region(tmp_path) as made:
        made.eu.order()
        wait_until(made.plane.serves, 10)
        for each in (made.plane, made.eu):
            state = each.plane.state
            closed = {
                key: ClosedOrder(state.wall(), order.subject)
                for key, order in state.orders.open.items()
            }
            state.install_copy(copy(18, "feature:chat"), state.now(), closed)

        assert not made.eu.plane.state.orders.unclosed
        assert made.eu.relay_orders is not None
        assert made.eu.relay_orders.interval_seconds(True) == 60
        assert not made.plane.plane.state.orders.unclosed


def test_malformed_events_add_nothing(tmp_path: Path) -> None:
    with region(tmp_path) as made:
        relay_orders = made.us.relay_orders
        assert relay_orders is not None
        events: list[Any] = [b"", b"[]", b"{}", b'{"orders": 7}', b'{"orders": [7, {}, null]}']
        for data in events:
            made.us.loop.run(relay_orders.receive_event(data))
        assert not made.us.plane.state.orders.orders


def test_the_list_of_orders_names_the_relay_and_its_upstream(tmp_path: Path) -> None:
    with region(tmp_path) as made:
        made.eu.order()
        wait_until(lambda: made.eu.holders() == {"dp-1", "eu-1"}, 10)
        assert orjson.loads(made.eu.post(ORDERS, {}).content)["status"] == 400


def test_two_relays_that_are_cut_off_together_exchange_orders(tmp_path: Path) -> None:
    with region(tmp_path) as made:
        for relay in (made.eu, made.us):
            relay.stop()
            relay.plane = plane()
        for relay, other in ((made.eu, made.us), (made.us, made.eu)):
            relay.line.cut()
            relay.start_relay(relay.url, other.url)
        wait_until(lambda: made.eu.statuses() == {"reachable": 1} == made.us.statuses(), 8)

        response = made.eu.order()

        assert response.json()["accepted_by"] == ["eu-1", "us-1"]
        assert made.us.serves()
        made.us.line.mend()  # The other one is still cut off.
        wait_until(made.plane.serves, 10)


def test_relays_with_different_tokens_exchange_nothing(tmp_path: Path) -> None:
    with region(tmp_path) as made:
        for relay in (made.eu, made.us):
            relay.stop()
            relay.plane = plane()
        made.us.token = "sg_relay00002_another-secret"
        for relay, other in ((made.eu, made.us), (made.us, made.eu)):
            relay.start_relay(relay.url, other.url)
        wait_until(lambda: made.eu.statuses() == {"unreachable": 1}, 8)

        made.eu.order()

        assert not made.us.plane.state.orders.orders


def test_events_with_known_orders_are_not_verified_again(tmp_path: Path) -> None:
    with region(tmp_path) as made:
        made.eu.order("feature:chat")
        wait_until(lambda: made.plane.serves("feature:chat"), 10)
        for each in (made.us, made.us):
            each.hear_upstream()
        received = made.us.plane.state.orders_received
        made.eu.order("feature:mail")
        wait_until(lambda: made.plane.serves("feature:mail"), 10)

        made.us.hear_upstream()

        assert (received, made.us.plane.state.orders_received) == (1, 2)
        assert made.us.relay_orders is not None
        assert made.us.relay_orders.interval_seconds(True) == 60  # The upstream has them.
