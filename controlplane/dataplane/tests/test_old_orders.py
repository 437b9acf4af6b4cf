"""Emergency orders that were closed long ago leave memory and disk, once the disk says so."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from controlplane.dataplane.memory.order_set import ClosedOrder
from controlplane.dataplane.storage.order_journal import OrderJournal
from controlplane.dataplane.tests.copies import SAVED
from controlplane.dataplane.tests.test_emergency_orders import KEY, make_plane
from controlplane.dataplane.tests.test_order_set import order

DAY = timedelta(days=1)


def test_only_orders_closed_for_thirty_days_are_forgotten(tmp_path: Path) -> None:
    journal = OrderJournal(tmp_path, (KEY,))
    for number in range(1, 6):
        journal.write(replace(order(number), at=SAVED.confirmed_at - 40 * DAY))
    served = make_plane(tmp_path)
    asyncio.run(served.emergency_orders.load())
    ended = {1: 31, 2: 29}
    closed = {
        UUID(int=number): ClosedOrder(SAVED.confirmed_at - days * DAY, "feature:chat")
        for number, days in ended.items()
    }
    saved = replace(SAVED, closed=closed, settled=frozenset({UUID(int=3)}))

    asyncio.run(served.emergency_orders.forget_old(saved))

    assert [each.id.int for each in journal.load()] == [2, 4, 5]
    assert {key.int for key in served.state.orders.orders} == {2, 4, 5}
    assert not served.emergency_orders.holders(UUID(int=1))
    assert served.emergency_orders.holders(UUID(int=2))
