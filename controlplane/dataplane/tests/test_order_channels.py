"""Emergency orders over Redis, and by a folder that the processes of a host share."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.conf import settings

from controlplane.dataplane.storage.order_journal import OrderJournal, order_key
from controlplane.dataplane.tests.conftest import through
from controlplane.dataplane.tests.lines import Background, Line, background, wait_until
from controlplane.dataplane.tests.neighbors import KEY, Neighbor
from controlplane.dataplane.tests.test_order_set import order


@pytest.fixture
def loop() -> Iterator[Background]:
    with background() as made:
        yield made


@pytest.fixture
def redis(loop: Background) -> Line:
    url = urlsplit(settings.REDIS_URL)
    return Line(loop, url.hostname or "127.0.0.1", url.port or 6379)


def make_pair(
    loop: Background, redis: Line, folder: Path, *keys: bytes
) -> tuple[Neighbor, Neighbor]:
    one, two = (
        Neighbor(loop, name, folder / name, redis_url=through(redis, settings.REDIS_URL), keys=keys)
        for name in ("dp-1", "dp-2")
    )
    return one, two


def start_and_subscribe(one: Neighbor, two: Neighbor) -> None:
    """Start two planes that know no address of each other, until orders pass between them."""
    one.start()
    two.start()
    number = 0

    def passes() -> bool:
        nonlocal number
        number += 1
        switch = f"feature:probe{number}"
        one.order(switch)
        time.sleep(0.1)
        return two.serves(switch)

    wait_until(passes, 10)


def test_orders_arrive_over_redis_alone(loop: Background, redis: Line, tmp_path: Path) -> None:
    key = order_key("a secret of this test alone")
    one, two = make_pair(loop, redis, tmp_path, key)
    try:
        start_and_subscribe(one, two)
        response = one.order().json()
        took = wait_until(two.serves, 3)
        wait_until(lambda: response["id"] in order_ids(two, key), 3)
    finally:
        one.stop()
        two.stop()

    assert response["accepted_by"] == ["dp-1"]  # Nobody answers over Redis.
    assert took < 1


def order_ids(neighbor: Neighbor, key: bytes) -> set[str]:
    assert neighbor.folder is not None
    return {str(each.id) for each in OrderJournal(neighbor.folder, (key,)).load()}


def test_a_frozen_redis_delays_no_order_and_works_again_afterwards(
    loop: Background, redis: Line, tmp_path: Path
) -> None:
    one, two = make_pair(loop, redis, tmp_path, order_key("another secret of this test"))
    try:
        start_and_subscribe(one, two)
        redis.freeze()
        began = time.monotonic()
        assert one.order("feature:chat").status_code == 201
        took = time.monotonic() - began
        redis.thaw()
        start_after_loss(one, two)
    finally:
        one.stop()
        two.stop()

    assert took < 1


def start_after_loss(one: Neighbor, two: Neighbor) -> None:
    number = 0

    def passes() -> bool:
        nonlocal number
        number += 1
        one.order(f"feature:again{number}")
        time.sleep(0.2)
        return two.serves(f"feature:again{number}")

    wait_until(passes, 20)


def test_orders_of_another_installation_on_the_same_redis_are_ignored(
    loop: Background, redis: Line, tmp_path: Path
) -> None:
    one, two = make_pair(loop, redis, tmp_path, order_key("one installation"))
    foreign = Neighbor(
        loop,
        "dp-9",
        tmp_path / "dp-9",
        redis_url=through(redis, settings.REDIS_URL),
        keys=(order_key("another installation"),),
    )
    try:
        start_and_subscribe(one, two)
        foreign.start()
        foreign.order("global:all")
        one.order("feature:last")
        wait_until(lambda: two.serves("feature:last"), 3)
    finally:
        for each in (one, two, foreign):
            each.stop()

    assert not two.serves("global:all")


def test_processes_that_share_a_folder_serve_each_others_orders(
    loop: Background, tmp_path: Path
) -> None:
    one, two = (Neighbor(loop, "dp-1", tmp_path) for _ in range(2))
    try:
        one.start()
        two.start()
        for number in range(5):
            response = one.order(f"feature:f{number}").json()
            assert response["accepted_by"] == ["dp-1"]
            assert wait_until(lambda n=number: two.serves(f"feature:f{n}"), 2) < 1
    finally:
        one.stop()
        two.stop()


def test_two_orders_within_the_resolution_of_the_folders_time_are_both_seen(
    loop: Background, tmp_path: Path
) -> None:
    one = Neighbor(loop, "dp-1", tmp_path)
    other = OrderJournal(tmp_path, (KEY,))
    try:
        one.start()
        for number in range(1, 40):
            other.write(order(number, f"feature:f{number}"))
        wait_until(lambda: len(one.plane.state.orders.open) == 39, 3)
    finally:
        one.stop()


def test_a_folder_that_cannot_be_read_is_logged_once_and_stops_nothing(
    loop: Background, tmp_path: Path
) -> None:
    one = Neighbor(loop, "dp-1", tmp_path)
    folder = tmp_path / "emergency"
    folder.write_bytes(b"a file")
    try:
        with pytest.raises(NotADirectoryError):
            one.start()
        folder.unlink()
        one.start()
        folder.write_bytes(b"a file, again")
        time.sleep(0.6)
        folder.unlink()
        OrderJournal(tmp_path, (KEY,)).write(order(1))
        wait_until(one.serves, 3)
    finally:
        one.stop()


def test_a_task_that_watches_ends_when_it_is_canceled(loop: Background, tmp_path: Path) -> None:
    one = Neighbor(loop, "dp-1", tmp_path)
    one.start()
    tasks = one.tasks[:-1]
    one.stop()

    async def are_done() -> bool:
        await asyncio.sleep(0)
        return all(task.done() for task in tasks)

    assert loop.run(are_done())
