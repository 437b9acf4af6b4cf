"""A data plane's emergency orders, reconciled by the console: the switch is blocked all along."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from django.utils import timezone

from controlplane.accounts.models import User
from controlplane.core.http.tests.callers import person
from controlplane.dataplane.storage.order_journal import order_key
from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.lines import wait_until
from switches.emergency.orders import Orderer
from switches.emergency.reconciliation import REFUSED_BLOCKS_FOR, reconcile_orders
from switches.emergency.tests.orders import person_with_code
from switches.models import EmergencyOrder, Episode

from .test_emergency_orders import ENGAGE

SOON = 20  # seconds


@pytest.fixture
def accepting(idle: Following, tmp_path: Path) -> Following:
    """A running plane that accepts orders."""
    idle.config = replace(
        idle.config, folder=tmp_path, signing_key=b"key", plane="dp-1", order_keys=(order_key("s"),)
    )
    idle.start()
    return idle


@pytest.fixture
def seen(accepting: Following) -> list[bool]:
    """Record, for each copy that is served, whether the switch is engaged."""
    found: list[bool] = []
    serve = accepting.state._serve

    def spy() -> None:
        serve()
        found.append(is_engaged(accepting))

    accepting.state._serve = spy  # type: ignore[method-assign]
    return found


def is_engaged(following: Following) -> bool:
    copy = following.state.copy
    return copy is not None and ENGAGE["switch"] in copy.entries


def accept(following: Following, user: User, **request: object) -> UUID:
    by = Orderer("user", user.username, user.pk)
    accepted = following.loop.run(
        following.plane.emergency_orders.accept(request or dict(ENGAGE), by)
    )
    return accepted.order.id


def accept_in_outage(following: Following, user: User) -> UUID:
    following.database.cut()
    wait_until(lambda: not following.state.database_reachable, SOON)
    return accept(following, user)


def mend(
    following: Following, has_stored: Callable[[], bool] = EmergencyOrder.objects.exists
) -> None:
    following.database.mend()
    wait_until(has_stored, SOON)


def test_an_order_of_an_outage_becomes_an_episode_without_a_gap(
    accepting: Following, seen: list[bool]
) -> None:
    order_id = accept_in_outage(accepting, person_with_code())
    assert is_engaged(accepting)

    mend(accepting)
    assert reconcile_orders(timezone.now()) == 1
    wait_until(lambda: not accepting.state.orders.open, SOON)

    assert is_engaged(accepting)
    assert seen
    assert all(seen)
    row = EmergencyOrder.objects.get()
    assert (row.pk, row.state) == (order_id, "reconciled")
    assert accepting.state.copy is not None
    entry = accepting.state.copy.entries[ENGAGE["switch"]]
    assert (entry.emergency, entry.engaged_at) == ("", Episode.objects.get().engaged_at)
    assert accepting.state.status().version >= (row.closed_version or 0)


def test_a_withdrawn_order_leaves_the_switch_released(accepting: Following) -> None:
    kim = person_with_code()
    order_id = accept_in_outage(accepting, kim)
    accept(accepting, kim, action="withdraw", order=str(order_id), reason="false alarm")
    assert not is_engaged(accepting)

    mend(accepting, lambda: EmergencyOrder.objects.count() == 2)
    assert reconcile_orders(timezone.now()) == 2
    wait_until(lambda: not accepting.state.orders.unclosed, SOON)

    assert not is_engaged(accepting)
    assert not Episode.objects.exists()


def test_a_refused_order_blocks_until_its_end(accepting: Following, seen: list[bool]) -> None:
    accept_in_outage(accepting, person("operator", "lee"))

    mend(accepting)
    now = timezone.now()
    assert reconcile_orders(now) == 1
    assert reconcile_orders(now + REFUSED_BLOCKS_FOR - timedelta(seconds=1)) == 0
    assert is_engaged(accepting)
    assert all(seen)

    assert reconcile_orders(now + REFUSED_BLOCKS_FOR) == 1
    wait_until(lambda: not is_engaged(accepting), SOON)
