"""Emergency orders and the database: it alone closes orders, together with the snapshot."""

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.utils import timezone

from controlplane.accounts.emergency_codes import codes
from controlplane.accounts.emergency_codes import services as emergency_codes
from controlplane.accounts.models.people import User
from controlplane.core.actors import system_actor
from controlplane.core.roles import Role
from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.lines import wait_until
from controlplane.dataplane.tests.test_following import confirmed, engage, has
from controlplane.dataplane.tests.test_order_set import order
from controlplane.dataplane.tests.test_restart import restart
from switches import publication, services
from switches.models import Episode
from switches.models.emergency import EmergencyOrder

FINANCE = replace(order(1, "segment:finance"), at=timezone.now())


@transaction.atomic
def close(at: datetime | None = None) -> int:
    """Close the order as the reconciliation does; return the version."""
    version = publication.advance(publication.lock(), timezone.now())
    EmergencyOrder.objects.update_or_create(
        id=FINANCE.id,
        defaults={
            "action": "engage",
            "switch": FINANCE.switch,
            "reason": FINANCE.reason,
            "expires_in": FINANCE.expires_in,
            "by_type": "user",
            "by_name": "kim",
            "by_id": 7,
            "at": FINANCE.at,
            "plane": "dp-1",
            "state": "reconciled",
            "closed_at": at or timezone.now(),
            "closed_version": version,
        },
    )
    return version


def is_engaged(following: Following) -> bool:
    copy = following.state.copy
    return copy is not None and FINANCE.switch in copy.entries


def add_order(following: Following) -> None:
    async def add() -> None:
        following.state.add_orders([FINANCE])

    following.loop.run(add())


def lose_reconciled_order(following: Following) -> None:
    """Let the plane serve the episode of an order, then lose both, as a restored backup does."""
    add_order(following)
    with transaction.atomic():
        engage("finance")
        version = close()
    wait_until(has(following, version), 3)
    Episode.objects.all().delete()
    EmergencyOrder.objects.all().delete()


def test_an_order_is_served_until_the_database_has_closed_it(following: Following) -> None:
    add_order(following)
    confirmed(following)
    assert is_engaged(following)
    version = close()
    wait_until(has(following, version), 3)
    assert not is_engaged(following)
    assert str(FINANCE.id) in following.state.copy.orders.closed  # type: ignore[union-attr]


def test_order_and_episode_change_places_at_once(following: Following) -> None:
    add_order(following)
    seen = []
    serve = following.state._serve

    def spy() -> None:
        serve()
        seen.append(is_engaged(following))

    following.state._serve = spy  # type: ignore[method-assign]
    with transaction.atomic():
        engage("finance")
        version = close()
    wait_until(has(following, version), 3)
    assert set(seen) == {True}
    assert not following.state.orders.open


def test_an_order_that_was_closed_long_ago_is_closed_again(following: Following) -> None:
    version = close(timezone.now() - timedelta(days=100))
    wait_until(has(following, version), 3)
    add_order(following)
    assert is_engaged(following)
    wait_until(lambda: not is_engaged(following), 5)  # Without another version.
    assert following.state.status().version == version


def test_a_restored_backup_does_not_release_what_an_order_engaged(following: Following) -> None:
    lose_reconciled_order(following)
    begun = services.begin_epoch(
        reason="backup of 02:00 UTC restored", actor=system_actor("test"), now=timezone.now()
    )
    wait_until(lambda: following.state.status().epoch == begun.epoch, 3)
    assert is_engaged(following)
    assert list(following.state.orders.open) == [FINANCE.id]


def test_codes_of_people_who_may_engage_are_followed(following: Following) -> None:
    kim = User.objects.create_user("kim", role=Role.OPERATOR)
    text = emergency_codes.create_code(user=kim, actor=kim.as_actor(), now=timezone.now())
    wait_until(lambda: "kim" in following.state.codes, 3)
    code = following.state.codes["kim"]
    assert code.user_id == kim.pk
    assert codes.is_correct(text, code.salt, code.digest)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE core_user SET role = 'viewer' WHERE id = %s", [kim.pk])
    wait_until(lambda: not following.state.codes, 3)


@pytest.fixture
def keeping(idle: Following, tmp_path: Path) -> Following:
    idle.config = replace(idle.config, folder=tmp_path / "snapshot", signing_key=b"key")
    idle.start()
    return idle


def test_closed_orders_and_codes_survive_a_restart_without_the_database(keeping: Following) -> None:
    kim = User.objects.create_user("kim", role=Role.OPERATOR)
    emergency_codes.create_code(user=kim, actor=kim.as_actor(), now=timezone.now())
    folder = keeping.config.folder
    assert folder is not None
    close()
    current = folder / "current"
    wait_until(
        lambda: (
            current.exists()
            and str(FINANCE.id).encode() in current.read_bytes()
            and b'"kim"' in current.read_bytes()
        ),
        5,
    )
    keeping.database.cut()
    keeping.redis.cut()
    restart(keeping)
    add_order(keeping)
    assert not is_engaged(keeping)
    assert keeping.state.codes["kim"].user_id == kim.pk


def test_an_order_holds_if_only_the_latest_snapshot_tells_that_it_is_closed(
    keeping: Following,
) -> None:
    folder = keeping.config.folder
    assert folder is not None
    wait_until(lambda: (folder / "current").exists(), 5)
    before = (folder / "current").read_bytes()
    version = close()
    wait_until(lambda: any(folder.glob(f"latest-*.{version}")), 5)
    keeping.stop()
    (folder / "current").write_bytes(before)  # Killed before it was written.
    keeping.database.cut()
    restart(keeping)
    add_order(keeping)
    # An id doesn't tell which of two orders with that id was closed.
    assert is_engaged(keeping)
    assert keeping.state.status().version == version


def test_a_backup_restored_without_a_new_epoch_releases_nothing(following: Following) -> None:
    lose_reconciled_order(following)
    wait_until(has(following, engage("mail")), 3)
    assert is_engaged(following)
    assert list(following.state.orders.open) == [FINANCE.id]
