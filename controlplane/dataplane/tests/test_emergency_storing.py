"""Emergency orders reach the database as soon as it can be reached, and disturb nothing before."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from django.db import connection
from structlog.testing import capture_logs

from controlplane.dataplane.emergency import database_writer
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.postgres.emergency_sql import insert_orders
from controlplane.dataplane.storage.order_journal import order_key
from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.lines import wait_until
from switches.emergency.orders import Orderer
from switches.models import EmergencyOrder

from .test_emergency_orders import ENGAGE
from .test_following import engage, has
from .test_order_set import order, withdrawal

KIM = Orderer("user", "kim", 7)


@pytest.fixture
def accepting(idle: Following, tmp_path: Path) -> Following:
    """A running plane that accepts orders."""
    # A key of its own: tests that run at the same time share Redis.
    keys = (order_key(str(uuid4())),)
    idle.config = replace(
        idle.config, folder=tmp_path, signing_key=b"key", plane="dp-1", order_keys=keys
    )
    idle.start()
    return idle


def accept(following: Following, **fields: object) -> UUID:
    request = fields if "action" in fields else {**ENGAGE, **fields}
    accepted = following.loop.run(following.plane.emergency_orders.accept(request, KIM))
    return accepted.order.id


def count_rows() -> int:
    return EmergencyOrder.objects.count()


def test_an_accepted_order_is_inserted_at_once(accepting: Following) -> None:
    order_id = accept(accepting, expires_in="2h")

    wait_until(lambda: count_rows() == 1, 10)
    row = EmergencyOrder.objects.get()
    kept = accepting.state.orders.orders[order_id]
    assert (row.id, row.action, row.switch, row.order_id) == (order_id, "engage", kept.switch, None)
    assert (row.reason, row.expires_in, row.at) == (kept.reason, "2h", kept.at)
    assert (row.by_type, row.by_name, row.by_id) == ("user", "kim", 7)
    assert (row.plane, row.planes, row.state) == ("dp-1", ["dp-1"], "received")


def test_a_row_that_waits_for_its_reconciliation_stops_no_read(accepting: Following) -> None:
    accept(accepting)
    wait_until(lambda: count_rows() == 1, 10)

    version = engage("finance")

    wait_until(has(accepting, version), 5)
    assert accepting.state.database_reachable


def test_orders_of_an_outage_are_inserted_once_the_database_is_back(accepting: Following) -> None:
    accepting.database.cut()
    wait_until(lambda: not accepting.state.database_reachable, 10)
    order_id = accept(accepting)
    withdrawal_id = accept(accepting, action="withdraw", order=str(order_id), reason="false alarm")
    assert count_rows() == 0

    accepting.database.mend()

    wait_until(lambda: count_rows() == 2, 10)
    row = EmergencyOrder.objects.get(pk=withdrawal_id)
    assert (row.action, row.order_id, row.expires_in) == ("withdraw", order_id, None)


def test_an_order_that_the_database_lost_is_inserted_again(
    accepting: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_writer, "REINSERT_SECONDS", 0.5)
    accept(accepting)
    wait_until(lambda: count_rows() == 1, 10)
    EmergencyOrder.objects.all().delete()

    wait_until(lambda: count_rows() == 1, 10)


def test_the_row_names_every_plane_that_holds_the_order(accepting: Following) -> None:
    order_id = accept(accepting)
    wait_until(lambda: count_rows() == 1, 10)

    accepting.plane.emergency_orders.record_holder("dp-2", [order_id])

    wait_until(lambda: EmergencyOrder.objects.get().planes == ["dp-1", "dp-2"], 10)


def test_a_restarted_plane_inserts_what_it_finds_on_disk(accepting: Following) -> None:
    accepting.database.cut()
    wait_until(lambda: not accepting.state.database_reachable, 10)
    accept(accepting)
    accepting.stop()
    accepting.database.mend()
    accepting.plane = Plane()

    accepting.start()

    wait_until(lambda: count_rows() == 1, 10)


def test_a_failing_insert_is_logged_once_and_stops_nothing(accepting: Following) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE switches_emergencyorder RENAME TO elsewhere")
    try:
        with capture_logs() as logs:
            accept(accepting)
            accept(accepting, switch="feature:mail")
            wait_until(lambda: bool(_failures(logs)), 10)
        assert len(accepting.state.orders.open) == 2
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE elsewhere RENAME TO switches_emergencyorder")
    wait_until(lambda: count_rows() == 2, 10)
    assert len(_failures(logs)) == 1


def test_an_order_that_the_database_refuses_does_not_hold_up_others(accepting: Following) -> None:
    wrong = replace(order(1), reason="a \x00 character")
    orders = [wrong, order(2, "feature:mail"), withdrawal(3, 2)]

    with capture_logs() as logs:
        holders = {each.id: ["dp-9"] for each in orders}
        asyncio.run(insert_orders(accepting.config, orders, holders))

    assert {row.pk.int for row in EmergencyOrder.objects.all()} == {2, 3}
    refused = [line for line in logs if line["event"] == "emergency_order.refused_by_database"]
    assert [line["order"] for line in refused] == [str(UUID(int=1))]


def test_the_first_inserted_order_of_an_id_is_kept(accepting: Following) -> None:
    for given, plane in ((order(1), "dp-1"), (order(1, seconds=5, plane="dp-2"), "dp-2")):
        asyncio.run(insert_orders(accepting.config, [given], {given.id: [plane]}))

    row = EmergencyOrder.objects.get()
    assert (row.at, row.planes) == (datetime(2026, 11, 28, 2, 10, tzinfo=UTC), ["dp-1", "dp-2"])


def _failures(logs: list[dict[str, object]]) -> list[dict[str, object]]:
    return [line for line in logs if line["event"] == "emergency_order.not_inserted"]
