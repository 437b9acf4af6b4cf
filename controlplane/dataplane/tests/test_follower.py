"""Invalid or slow policies and causes never delay a switch."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import orjson
import psycopg
import pytest
from django.db import connection, transaction

from breakers.models import Dependency, Override, Registry
from controlplane.core.degradation.models import Degradation
from controlplane.core.degradation_levels import Cause, to_json
from controlplane.dataplane.tests.conftest import POLL_SECONDS, Following
from controlplane.dataplane.tests.lines import wait_until
from controlplane.dataplane.tests.test_config_following import NOW, change, override, version
from controlplane.dataplane.tests.test_following import (
    confirmed,
    engage,
    get_tokens,
    has,
    make_token,
)
from switches.models import Publication

ORACLE = Cause(2, "core->oracle", "core->oracle is open.")


def dependencies(following: Following) -> dict[str, dict[str, object]]:
    assert following.state.policies is not None
    found: dict[str, dict[str, object]] = orjson.loads(
        following.state.policies.document_for("core").body
    )["dependencies"]
    return found


@contextmanager
def locked(table: str) -> Iterator[None]:
    """Lock the table against reads within the context."""
    with psycopg.connect(**_own()) as holder:
        holder.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield
        holder.rollback()


def _own() -> dict[str, object]:
    given = connection.settings_dict
    return {
        "host": given["HOST"],
        "port": given["PORT"],
        "user": given["USER"],
        "password": given["PASSWORD"],
        "dbname": given["NAME"],
    }


def tell_causes(revision: int, causes: object) -> None:
    Degradation.objects.update(revision=revision, causes=causes)


@pytest.mark.parametrize("causes", [[{"level": 2, "what": "x"}], [7], {"level": 2}, 5, [None]])
def test_causes_that_cannot_be_read_leave_the_old_ones_and_switches_go_on(
    idle: Following, causes: object, caplog: pytest.LogCaptureFixture
) -> None:
    tell_causes(5, to_json([ORACLE]))
    idle.start()
    wait_until(lambda: idle.state.causes == (ORACLE,), 3)

    with transaction.atomic():  # Both are read together.
        tell_causes(6, causes)
        changed = change("oracle", 100)
    make_token()
    wait_until(has(idle, engage("finance")), 3)
    wait_until(lambda: version(idle) == changed and get_tokens(idle) == {b"reader0001"}, 3)
    accepted = idle.database.accepted
    confirmed(idle, times=5)

    assert idle.state.causes == (ORACLE,)
    assert idle.state.database_reachable
    assert idle.database.accepted - accepted < 3  # Five, if each poll read them again.
    assert sum("causes_unreadable" in str(each.msg) for each in caplog.records) == 1


def test_causes_that_cannot_be_read_at_the_start_keep_nothing_from_being_served(
    idle: Following,
) -> None:
    tell_causes(5, [{"what": "odd"}])
    published = engage("finance")
    changed = change("oracle", 100)

    idle.start()

    assert has(idle, published)()
    assert version(idle) == changed
    assert idle.state.causes == ()


def test_a_document_that_is_none_stays_as_it_was_and_all_others_arrive(
    following: Following,
) -> None:
    change("oracle", 100)
    wait_until(lambda: version(following) == 1, 3)

    with transaction.atomic():
        change("oracle", 200)
        Dependency.objects.filter(callee="oracle").update(document=[])
        change("redis", 500)
    wait_until(lambda: version(following) == 3, 3)

    assert {name: one["timeout_ms"] for name, one in dependencies(following).items()} == {
        "core->oracle": 100,
        "core->redis": 500,
    }
    wait_until(has(following, engage("finance")), 3)
    assert following.state.database_reachable
    mended = change("oracle", 300)
    wait_until(lambda: version(following) == mended, 3)
    assert dependencies(following)["core->oracle"]["timeout_ms"] == 300


def test_entries_that_cannot_be_read_are_not_asked_for_without_a_rest(
    idle: Following, caplog: pytest.LogCaptureFixture
) -> None:
    """Every read after the head fails."""
    idle.start()
    wait_until(lambda: idle.state.database_reachable, 3)
    accepted = idle.database.accepted

    make_token()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE core_token SET digest = 'no hex'")
    wait_until(lambda: not idle.state.database_reachable, 5)
    time.sleep(1)

    assert idle.database.accepted - accepted < 10
    assert sum("database_lost" in str(each.msg) for each in caplog.records) == 1
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM core_token")
    wait_until(lambda: idle.state.database_reachable, 3)


@pytest.mark.parametrize("table", ["breakers_registry", "core_degradation"])
def test_a_row_that_is_missing_costs_switches_and_tokens_nothing(
    idle: Following, table: str
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table}")
        columns = [column.name for column in cursor.description]
        kept = cursor.fetchone()
        cursor.execute(f"DELETE FROM {table}")
    make_token()
    try:
        idle.start()
        wait_until(has(idle, engage("finance")), 3)
        wait_until(lambda: get_tokens(idle) == {b"reader0001"}, 3)
        accepted = idle.database.accepted
        confirmed(idle, times=5)

        assert idle.state.database_reachable
        assert idle.database.accepted == accepted
    finally:
        marks = ", ".join(["%s"] * len(columns))
        with connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", kept)


@pytest.mark.slow
def test_policies_that_cannot_be_read_in_time_hold_up_no_switch(
    following: Following, caplog: pytest.LogCaptureFixture
) -> None:
    change("oracle", 100)
    wait_until(lambda: version(following) == 1, 3)

    with locked("breakers_dependency"):
        Registry.objects.update(version=2)
        wait_until(has(following, engage("before")), 3)
        wait_until(
            lambda: "policies_unreadable" in caplog.text, 3
        )  # The lock timeout is one second.
        wait_until(has(following, engage("after")), 3)
        confirmed(following)

        assert following.state.database_reachable
        assert following.state.policies_age_seconds() > 1
        assert version(following) == 1
        assert "database_lost" not in caplog.text
    changed = change("oracle", 300)

    wait_until(lambda: version(following) == changed, 8)


def test_policies_of_a_table_that_waits_for_a_lock_do_not_delay_the_start_for_long(
    idle: Following,
) -> None:
    published = engage("finance")
    change("oracle", 100)
    with locked("breakers_dependency"):
        began = time.monotonic()
        idle.start()

        assert time.monotonic() - began < 3
        assert has(idle, published)()


def test_one_that_nobody_registered_and_without_an_override_is_left_out(
    following: Following,
) -> None:
    Dependency.objects.create(caller="core", callee="found", registered_at=NOW, changed_at=NOW)
    changed = override("found")
    wait_until(lambda: version(following) == changed, 3)
    assert set(dependencies(following)) == {"core->found"}

    with transaction.atomic():
        Override.objects.update(ended_at=NOW, ended_why="removed")
        ended = changed + 1
        Registry.objects.update(version=ended)
        Dependency.objects.update(version=ended)
    wait_until(lambda: version(following) == ended, 3)

    assert dependencies(following) == {}


def lose_changes(to_version: int) -> None:
    """Restore an older state without a new epoch."""
    Registry.objects.update(version=to_version, changed_at=NOW.replace(year=2020))
    Dependency.objects.filter(callee="oracle").update(version=1, document={"timeout_ms": 100})


def test_changes_lost_by_a_restored_backup_are_not_told_once_the_versions_have_come_as_far(
    following: Following,
) -> None:
    change("oracle", 100)
    change("oracle", 999)
    wait_until(lambda: version(following) == 2, 3)

    lose_changes(to_version=1)
    wait_until(lambda: following.state.policies_age_seconds() > 5 * POLL_SECONDS, 4)
    with transaction.atomic():
        change("redis", 500)
        changed = change("kafka", 500)
    wait_until(lambda: version(following) == changed, 3)

    assert dependencies(following)["core->oracle"]["timeout_ms"] == 100


def test_changes_lost_while_the_database_was_away_are_not_told(following: Following) -> None:
    change("oracle", 100)
    change("oracle", 999)
    wait_until(lambda: version(following) == 2, 3)
    following.database.cut()

    with transaction.atomic():
        lose_changes(to_version=1)
        change("redis", 500)
        changed = change("kafka", 500)
    following.database.mend()
    wait_until(lambda: version(following) == changed, 5)

    assert dependencies(following)["core->oracle"]["timeout_ms"] == 100


def test_a_version_given_twice_is_read_anew(following: Following) -> None:
    change("oracle", 100)
    change("oracle", 999)
    wait_until(lambda: version(following) == 2, 3)

    with transaction.atomic():
        lose_changes(to_version=2)
    wait_until(lambda: dependencies(following)["core->oracle"]["timeout_ms"] == 100, 3)

    wait_until(lambda: following.state.policies_age_seconds() < 1, 2)


def test_policies_of_the_past_hold_up_no_switch(following: Following) -> None:
    change("oracle", 100)
    change("oracle", 200)
    wait_until(lambda: version(following) == 2, 3)

    Registry.objects.update(version=1)
    wait_until(has(following, engage("finance")), 3)

    assert version(following) == 2


def test_a_new_epoch_is_told_although_its_policies_are_older(following: Following) -> None:
    change("oracle", 100)
    change("oracle", 200)
    wait_until(lambda: version(following) == 2, 3)

    with transaction.atomic():
        lose_changes(to_version=1)
        Publication.objects.update(epoch=uuid4())
    wait_until(lambda: version(following) == 1, 3)

    assert dependencies(following)["core->oracle"]["timeout_ms"] == 100
