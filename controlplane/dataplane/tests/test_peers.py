"""Emergency orders spread between data planes, whatever happens to the network in between."""

import threading
import time
from pathlib import Path

import httpx

from controlplane.dataplane.storage.order_journal import OrderJournal
from controlplane.dataplane.tests.lines import wait_until
from controlplane.dataplane.tests.neighbors import KEY, Neighbor, neighborhood
from controlplane.dataplane.tests.served import BEARER


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
