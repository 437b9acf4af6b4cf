"""Emergency orders spread between data planes, whatever happens to the network in between."""

import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from controlplane.dataplane.storage.order_journal import OrderJournal, order_key
from controlplane.dataplane.tests.lines import wait_until
from controlplane.dataplane.tests.neighbors import KEY, ORDERS, Neighbor, neighborhood
from controlplane.dataplane.tests.served import BEARER
from controlplane.dataplane.tests.test_order_set import order as make_order


def test_an_order_reaches_all_planes_before_the_answer(tmp_path: Path) -> None:
    with neighborhood(tmp_path) as planes:
        response = planes[1].order()

        assert response.status_code == 201
        content = response.json()
        assert (content["accepted_by"], content["planes"]) == (["dp-1", "dp-2", "dp-3"], 3)
        for number in (1, 2, 3):
            assert planes[number].serves()
            assert len(OrderJournal(tmp_path / f"dp-{number}", (KEY,)).load()) == 1


def test_a_stream_client_of_another_plane_has_the_order_within_milliseconds(
    tmp_path: Path,
) -> None:
    with neighborhood(tmp_path) as planes:
        took = sorted(measure_stream(planes[1], planes[2], f"feature:f{n}") for n in range(20))
    assert took[len(took) // 2] < 0.2
    assert took[-1] < 1.5


def measure_stream(giver: Neighbor, follower: Neighbor, switch: str) -> float:
    """Return the seconds from an order to its arrival at a stream client of another plane."""
    connected, arrived = threading.Event(), threading.Event()
    at = [0.0]

    def follow() -> None:
        with httpx.stream(
            "GET", f"{follower.url}/api/v1/snapshot/stream", headers=BEARER, timeout=10
        ) as response:
            for line in response.iter_lines():
                connected.set()
                if switch in line:
                    at[0] = time.perf_counter()
                    arrived.set()
                    return

    thread = threading.Thread(target=follow)
    thread.start()
    assert connected.wait(5)
    began = time.perf_counter()
    assert giver.order(switch).status_code == 201
    assert arrived.wait(5)
    thread.join()
    return at[0] - began


def test_separated_planes_exchange_their_orders_when_the_network_is_back(tmp_path: Path) -> None:
    with neighborhood(tmp_path) as planes:
        planes.split(1)
        alone = planes[1].order("feature:chat").json()
        others = planes[2].order("segment:finance").json()
        assert alone["accepted_by"] == ["dp-1"]
        assert others["accepted_by"] == ["dp-2", "dp-3"]
        assert alone["planes"] == others["planes"] == 3
        assert not planes[2].serves("feature:chat")

        planes.mend()

        for number in (1, 2, 3):
            wait_until(lambda n=number: planes[n].serves("feature:chat"), 4)
            wait_until(lambda n=number: planes[n].serves("segment:finance"), 4)


def test_a_withdrawal_reaches_all_planes_and_wins_over_the_order_that_comes_later(
    tmp_path: Path,
) -> None:
    with neighborhood(tmp_path) as planes:
        planes.split(3)
        order_id = planes[1].order().json()["id"]
        withdrawal = {"action": "withdraw", "order": order_id, "reason": "false alarm, all fine"}
        assert planes[2].post(ORDERS, withdrawal).json()["accepted_by"] == ["dp-1", "dp-2"]
        assert not planes[1].serves()

        planes.mend()

        wait_until(lambda: len(planes[3].plane.state.orders.orders) == 2, 4)
        assert not planes[3].serves()


def test_each_plane_says_which_planes_hold_an_order(tmp_path: Path) -> None:
    with neighborhood(tmp_path) as planes:
        planes[1].order()

        for number in (1, 2, 3):
            wait_until(lambda n=number: len(planes[n].holders()) == 3, 4)  # type: ignore[misc]


def test_an_order_passes_through_a_plane_that_both_sides_reach(tmp_path: Path) -> None:
    with neighborhood(tmp_path) as planes:
        for number in (1, 2, 3):
            planes[number].plane.state.database_reachable = True  # Rare exchanges.
        planes.lines[1, 3].cut()
        planes.lines[3, 1].cut()

        planes[1].order()

        wait_until(planes[3].serves, 4)


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_wrong_clock_delays_no_order(tmp_path: Path, hours: int) -> None:
    with neighborhood(tmp_path, start=False) as planes:
        state = planes[1].plane.state
        state.set_clock(datetime.now(UTC) + timedelta(hours=hours), state.now())
        planes.start()

        there = planes[1].order("feature:chat").json()
        back = planes[2].order("segment:finance").json()

        assert there["accepted_by"] == back["accepted_by"] == ["dp-1", "dp-2", "dp-3"]


def test_planes_understand_each_other_while_the_secret_is_rotated(tmp_path: Path) -> None:
    newer = order_key("a newer secret")
    with neighborhood(tmp_path, start=False) as planes:
        planes[1].keys = (newer, KEY)
        planes.start()

        there = planes[1].order("feature:chat").json()
        back = planes[2].order("segment:finance").json()

        assert there["accepted_by"] == back["accepted_by"] == ["dp-1", "dp-2", "dp-3"]


def test_a_plane_with_another_secret_takes_and_gives_nothing(tmp_path: Path) -> None:
    with neighborhood(tmp_path, 2, start=False) as planes:
        planes[2].keys = (order_key("another installation"),)
        for number in (1, 2):
            planes[number].start(*planes.urls_of(number))
        refused = {"unreachable": 1}
        wait_until(lambda: planes[1].statuses() == refused == planes[2].statuses(), 5)

        response = planes[1].order().json()

        assert (response["accepted_by"], response["planes"]) == (["dp-1"], 2)
        assert not planes[2].plane.state.orders.orders


def test_a_plane_that_cannot_store_an_order_serves_it_and_is_not_counted(tmp_path: Path) -> None:
    with neighborhood(tmp_path, 2) as planes:
        blocked = tmp_path / "dp-2" / "emergency"
        blocked.parent.mkdir(exist_ok=True)
        blocked.write_bytes(b"a file, where the folder should be")

        response = planes[1].order().json()

        assert response["accepted_by"] == ["dp-1"]
        assert planes[2].serves()
        blocked.unlink()  # Now it can.
        wait_until(lambda: planes[1].holders() == {"dp-1", "dp-2"}, 6)
        assert len(OrderJournal(tmp_path / "dp-2", (KEY,)).load()) == 1


def test_five_thousand_orders_arrive_within_seconds_and_requests_are_answered_meanwhile(
    tmp_path: Path,
) -> None:
    with neighborhood(tmp_path, 2) as planes:
        planes.split(1)
        given = [make_order(number, f"feature:f{number}") for number in range(1, 5001)]

        async def give() -> None:
            planes[1].plane.state.add_orders(given)

        planes.loop.run(give())
        began, slowest = time.monotonic(), 0.0
        planes.mend()
        while len(planes[2].plane.state.orders.open) < 5000:
            assert time.monotonic() - began < 40
            asked = time.monotonic()
            response = httpx.get(f"{planes[2].url}/health/live", timeout=10, verify=False)
            assert response.status_code == 200
            slowest = max(slowest, time.monotonic() - asked)
        assert slowest < 3
        digests = {each.plane.state.orders.digest for each in planes.planes.values()}
        assert len(digests) == 1
