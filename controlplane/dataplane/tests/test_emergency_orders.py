"""Acceptance of emergency orders: stored on disk, served at once, repeated without harm."""

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from structlog.testing import capture_logs

from controlplane.dataplane.application import Application
from controlplane.dataplane.config import Config
from controlplane.dataplane.emergency import service
from controlplane.dataplane.memory.order_set import ClosedOrder
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.storage.order_journal import OrderJournal, order_key
from controlplane.dataplane.tests.served import EPOCH, ask, copy, credential, plane
from switches.emergency.orders import Order, Orderer, hash_ids

PATH = "/api/v1/emergency/orders"
KEY = order_key("a secret")
ORDERER = "sg_orderer01_a-fifth-secret"
MAY_ORDER = {"Authorization": f"Bearer {ORDERER}"}
ENGAGE = {"action": "engage", "switch": "feature:chat", "reason": "OpenAI 5xx on completions"}
Post = Callable[..., Awaitable[httpx.Response]]


def make_plane(folder: Path, name: str = "dp-1", *switch_ids: str) -> Plane:
    """Return a plane with its journal in `folder`, and a token that may give orders."""
    made = plane(*switch_ids)
    tokens = {**(made.state.tokens or {}), b"orderer01": credential(ORDERER, "switches:emergency")}
    made.state.install_tokens(1, tokens)
    made.emergency_orders.configure(
        Config("postgresql://", None, "redis://", folder=folder, plane=name, order_keys=(KEY,))
    )
    return made


@asynccontextmanager
async def client_of(served: Plane) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(Application(served))
    async with httpx.AsyncClient(
        transport=transport, base_url="http://plane", headers=MAY_ORDER
    ) as client:
        yield client


def order_at(served: Plane, **fields: Any) -> httpx.Response:
    async def ordered() -> httpx.Response:
        async with client_of(served) as client:
            return await client.post(PATH, json=fields)

    return asyncio.run(ordered())


def test_an_accepted_order_is_on_disk_and_served(tmp_path: Path) -> None:
    served = make_plane(tmp_path, "dp-1", "segment:finance")

    response = order_at(served, **ENGAGE)

    assert response.status_code == 201
    document = response.json()
    assert (document["switch"], document["plane"]) == ("feature:chat", "dp-1")
    assert document["by"] == {"type": "token", "name": "orderer01", "id": sum(ORDERER.encode())}
    assert (document["accepted_by"], document["planes"]) == (["dp-1"], 1)
    (stored,) = OrderJournal(tmp_path, (KEY,)).load()
    assert str(stored.id) == document["id"]
    assert served.state.copy is not None
    assert served.state.copy.entries["feature:chat"].emergency == document["id"]


def test_a_restarted_plane_serves_its_orders_without_a_database(tmp_path: Path) -> None:
    order_at(make_plane(tmp_path), **ENGAGE)
    restarted = make_plane(tmp_path)

    asyncio.run(restarted.emergency_orders.load())

    assert restarted.state.copy is not None
    assert "feature:chat" in restarted.state.copy.entries


def test_an_order_whose_file_was_deleted_is_stored_again(tmp_path: Path) -> None:
    served = make_plane(tmp_path)
    order_at(served, **ENGAGE)
    shutil.rmtree(tmp_path / "emergency")

    async def read_snapshot() -> None:
        await served.emergency_orders.load()
        assert served.emergency_orders.holders(order.id) == frozenset()
        await served.emergency_orders.store_missing()

    (order,) = served.state.orders.orders.values()
    asyncio.run(read_snapshot())

    assert OrderJournal(tmp_path, (KEY,)).load() == [order]


def test_of_two_stored_orders_with_one_id_the_kept_one_counts_as_stored(tmp_path: Path) -> None:
    served = make_plane(tmp_path)
    order_at(served, **ENGAGE)
    (later,) = served.state.orders.orders.values()
    kept = replace(later, at=later.at - timedelta(seconds=1), plane="dp-2")
    journal = OrderJournal(tmp_path, (KEY,))

    async def read_snapshot() -> None:
        await served.emergency_orders.merge([kept])
        stored_at = journal.changed_at()
        await served.emergency_orders.load()
        await served.emergency_orders.store_missing()
        assert journal.changed_at() == stored_at

    asyncio.run(read_snapshot())

    assert set(journal.load()) == {kept, later}


def test_a_repeated_order_has_the_same_answer_and_another_one_is_refused(tmp_path: Path) -> None:
    served = make_plane(tmp_path)
    given = {**ENGAGE, "id": str(uuid4())}

    first, second = order_at(served, **given), order_at(served, **given)
    other = order_at(served, **{**given, "switch": "feature:mail"})

    assert first.status_code == second.status_code == 201
    assert first.json() == second.json()
    assert other.status_code == 409
    assert len(served.state.orders.orders) == 1


@pytest.mark.parametrize("is_known", [True, False])
def test_the_id_of_an_order_that_ended_is_not_accepted_again(
    tmp_path: Path, is_known: bool
) -> None:
    served = make_plane(tmp_path)
    given = {**ENGAGE, "id": str(uuid4())}
    state = served.state
    if is_known:
        order_at(served, **given)
    closed = {UUID(given["id"]): ClosedOrder(state.wall(), "feature:chat")}
    state.install_copy(copy(18), state.now(), closed=closed)

    soon = order_at(served, **given)
    state._ahead += timedelta(minutes=11).total_seconds()
    late = order_at(served, **given)

    assert soon.status_code == (201 if is_known else 409)
    assert late.status_code == 409
    assert "new id" in late.json()["detail"]


def test_one_order_sent_twice_at_once_is_accepted_once(tmp_path: Path) -> None:
    served = make_plane(tmp_path)
    given = {**ENGAGE, "id": str(uuid4())}

    async def run() -> list[httpx.Response]:
        async with client_of(served) as client:
            posts = [client.post(PATH, json=given) for _ in range(5)]
            return await asyncio.gather(
                *posts, client.post(PATH, json={**given, "switch": "feature:mail"})
            )

    *same, other = asyncio.run(run())

    assert {response.status_code for response in same} == {201}
    assert len({response.text for response in same}) == 1
    assert other.status_code == 409


def test_a_withdrawal_ends_the_order(tmp_path: Path) -> None:
    served = make_plane(tmp_path)
    order_id = order_at(served, **ENGAGE).json()["id"]

    withdrawn = order_at(served, action="withdraw", order=order_id, reason="false alarm")
    again = order_at(served, action="withdraw", order=order_id, reason="false alarm, really")

    assert (withdrawn.status_code, again.status_code) == (201, 201)
    assert withdrawn.json()["order"] == order_id
    assert withdrawn.json() == again.json()
    assert served.state.copy is not None
    assert "feature:chat" not in served.state.copy.entries
    assert len(OrderJournal(tmp_path, (KEY,)).load()) == 2


def block_disk(folder: Path) -> None:
    """Make every attempt to store an order in `folder` fail."""
    (folder / "emergency").write_bytes(b"a file")


def test_an_order_that_no_disk_holds_is_refused_and_not_served(tmp_path: Path) -> None:
    served = make_plane(tmp_path)
    block_disk(tmp_path)

    response = order_at(served, **ENGAGE)

    assert response.status_code == 503
    assert response.json()["detail"].startswith("The order is not in force: this data plane can't")
    assert not served.state.orders.orders
    (tmp_path / "emergency").unlink()
    assert order_at(served, **ENGAGE).status_code == 201


def test_an_order_that_only_another_plane_could_store_is_in_force(tmp_path: Path) -> None:
    served = make_plane(tmp_path)
    block_disk(tmp_path)

    async def share(orders: Sequence[Order]) -> None:
        served.emergency_orders.record_holder("dp-2", [each.id for each in orders])

    served.emergency_orders.share = share
    served.emergency_orders.count_planes = lambda: 3

    response = order_at(served, **ENGAGE)

    assert response.status_code == 201
    assert (response.json()["accepted_by"], response.json()["planes"]) == (["dp-2"], 3)
    assert len(served.state.orders.open) == 1


def test_with_other_planes_a_failure_does_not_claim_that_nothing_happened(tmp_path: Path) -> None:
    served = make_plane(tmp_path)
    block_disk(tmp_path)
    served.emergency_orders.count_planes = lambda: 2
    order_id = str(uuid4())

    detail = order_at(served, **ENGAGE, id=order_id).json()["detail"]

    assert "may come into force later" in detail
    assert order_id in detail


def test_a_disk_that_hangs_does_not_hold_up_the_answer_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "DISK_SECONDS", 0.1)
    served = make_plane(tmp_path)
    (tmp_path / "emergency").mkdir(mode=0o700)
    release = threading.Event()

    async def run() -> tuple[httpx.Response, httpx.Response]:
        for _ in range(service.DISK_THREADS):  # Threads that wait for the disk.
            served.emergency_orders._disk.submit(release.wait)
        async with client_of(served) as client:
            given = {**ENGAGE, "id": str(uuid4())}
            hung = await client.post(PATH, json=given)
            release.set()
            await asyncio.sleep(0.05)
            return hung, await client.post(PATH, json=given)

    hung, repeated = asyncio.run(run())

    assert hung.status_code == 503
    assert "may come into force later" in hung.json()["detail"]
    assert repeated.status_code == 201


def test_a_client_that_hangs_up_does_not_stop_the_order(tmp_path: Path) -> None:
    served = make_plane(tmp_path)
    shared = asyncio.Event()

    async def share(_orders: Sequence[Order]) -> None:
        await shared.wait()

    served.emergency_orders.share = share

    async def run() -> None:
        by = Orderer("token", "a", 1)
        accepting = asyncio.create_task(served.emergency_orders.accept(ENGAGE, by))
        while not served.state.orders.open:
            await asyncio.sleep(0.001)
        accepting.cancel()
        shared.set()
        await asyncio.sleep(0)
        again = await served.emergency_orders.accept({**ENGAGE, "switch": "feature:mail"}, by)
        assert again.accepted_by == ("dp-1",)

    asyncio.run(run())

    assert len(served.state.orders.open) == 2


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"action": "release"}, {"action"}),
        ({}, {"action"}),
        ({"action": "engage"}, {"switch", "reason"}),
        ({**ENGAGE, "id": "7"}, {"id"}),
        ({**ENGAGE, "id": 7}, {"id"}),
        ({**ENGAGE, "on_expiry": "ramp"}, {"on_expiry"}),
        ({**ENGAGE, "expires_in": "40d"}, {"expires_in"}),
        ({"action": "withdraw", "reason": "false alarm"}, {"order"}),
        ({"action": "withdraw", "order": "7", "reason": "false alarm"}, {"order"}),
        ({"action": "withdraw", "order": "7", "expires_in": "1h"}, {"expires_in"}),
    ],
)
def test_wrong_fields_are_named(tmp_path: Path, fields: dict[str, Any], named: set[str]) -> None:
    response = order_at(make_plane(tmp_path), **fields)

    assert response.status_code == 400
    assert set(response.json()["errors"]) == named
    assert not (tmp_path / "emergency").exists()


def test_bodies_that_are_too_large_or_no_object_are_refused(tmp_path: Path) -> None:
    served = make_plane(tmp_path)

    large = ask(served, "POST", PATH, MAY_ORDER, content=b" " * 10 * 1024 * 1024)
    array = ask(served, "POST", PATH, MAY_ORDER, content=b"[]")

    assert (large.status_code, array.status_code) == (413, 400)


def test_only_known_open_orders_can_be_withdrawn(tmp_path: Path) -> None:
    served = make_plane(tmp_path)
    first = order_at(served, **ENGAGE).json()["id"]
    withdraw = {"action": "withdraw", "reason": "false alarm"}

    unknown = order_at(served, **withdraw, order=str(uuid4()))
    assert served.state.published is not None
    closed = {UUID(first): ClosedOrder(datetime.now(UTC), "feature:chat")}
    served.state.install_copy(copy(18, "feature:chat"), served.state.now(), closed)
    taken_over = order_at(served, **withdraw, order=first)

    assert (unknown.status_code, taken_over.status_code) == (404, 409)
    assert "release the switch there" in taken_over.json()["detail"]
    assert len(served.state.orders.orders) == 1


def test_a_withdrawal_needs_a_reason_and_withdraws_no_withdrawal(tmp_path: Path) -> None:
    served = make_plane(tmp_path)
    first = order_at(served, **ENGAGE).json()["id"]

    without = order_at(served, action="withdraw", order=first)
    withdrawal = order_at(served, action="withdraw", order=first, reason="false alarm").json()["id"]
    of_withdrawal = order_at(served, action="withdraw", order=withdrawal, reason="no, it is one")

    assert (without.status_code, of_withdrawal.status_code) == (400, 404)


def test_beyond_the_most_open_orders_withdrawals_are_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_OPEN_ORDERS", 2)
    served = make_plane(tmp_path)
    given = {**ENGAGE, "id": str(uuid4())}
    order_at(served, **given)

    async def run() -> list[httpx.Response]:
        async with client_of(served) as client:
            return await asyncio.gather(*(client.post(PATH, json=ENGAGE) for _ in range(3)))

    at_once = [response.status_code for response in asyncio.run(run())]

    assert sorted(at_once) == [201, 409, 409]
    assert order_at(served, **given).status_code == 201
    withdrawal = {"action": "withdraw", "order": given["id"], "reason": "false alarm"}
    assert order_at(served, **withdrawal).status_code == 201
    assert order_at(served, **ENGAGE).status_code == 201


def test_a_folder_that_cannot_be_read_does_not_stop_the_plane(tmp_path: Path) -> None:
    served = make_plane(tmp_path)
    block_disk(tmp_path)

    with capture_logs() as logs:
        asyncio.run(served.emergency_orders.restore())

    assert [line["event"] for line in logs] == ["emergency_order.not_restored"]


def get(served: Plane, query: str = "") -> dict[str, Any]:
    async def listed() -> httpx.Response:
        async with client_of(served) as client:
            return await client.get(PATH + query)

    response = asyncio.run(listed())
    assert response.status_code == 200
    document: dict[str, Any] = response.json()
    return document


def test_the_list_has_open_and_withdrawn_orders_with_their_planes(tmp_path: Path) -> None:
    served = make_plane(tmp_path)
    first = order_at(served, **ENGAGE).json()["id"]
    second = order_at(served, **ENGAGE | {"switch": "feature:mail"}).json()["id"]
    order_at(served, action="withdraw", order=first, reason="false alarm")
    served.emergency_orders.record_holder("dp-2", [UUID(second)])

    open_one, withdrawn = get(served)["results"]

    assert (open_one["id"], open_one["state"]) == (second, "open")
    assert (open_one["planes"], open_one["withdrawal"]) == (["dp-1", "dp-2"], None)
    assert (withdrawn["id"], withdrawn["state"]) == (first, "withdrawn")
    assert withdrawn["withdrawal"]["reason"] == "false alarm"
    assert withdrawn["withdrawal"]["planes"] == ["dp-1"]


def test_the_list_comes_in_pages(tmp_path: Path) -> None:
    served = make_plane(tmp_path)
    for number in range(3):
        order_at(served, **ENGAGE | {"switch": f"feature:f{number}"})

    first = get(served, "?limit=2")
    second = get(served, first["next"].removeprefix(f"http://plane{PATH}"))

    assert [each["switch"] for each in first["results"]] == ["feature:f2", "feature:f1"]
    assert [each["switch"] for each in second["results"]] == ["feature:f0"]
    assert (first["previous"], second["next"]) == (None, None)
    assert second["previous"] == f"http://plane{PATH}?limit=2&offset=0"


def test_the_list_tells_how_many_instances_apply_an_order(tmp_path: Path) -> None:
    served = make_plane(tmp_path)
    first = order_at(served, **ENGAGE).json()["id"]
    of_first = f"{EPOCH}.17-{hash_ids([first])}".encode()
    second = order_at(served, **ENGAGE | {"switch": "feature:mail"}).json()["id"]
    record = served.state.ledger.presence_buffer.record_presence
    copy = served.state.copy
    assert copy is not None
    record(b"core/both", copy.etag, copy)
    record(b"core/none", f"{EPOCH}.17".encode(), copy)
    record(b"core/reporting", of_first, copy)

    before = {each["id"]: each["applied"] for each in get(served)["results"]}
    served.state.ledger.presence_buffer.record_orders("core/reporting", [first])
    after = {each["id"]: each["applied"] for each in get(served)["results"]}

    assert before == {first: {"by": 1, "of": 3}, second: {"by": 1, "of": 3}}
    assert after == {first: {"by": 2, "of": 3}, second: {"by": 1, "of": 3}}
