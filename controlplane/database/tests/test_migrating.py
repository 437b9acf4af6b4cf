"""`migrate` gives up early on a locked table and can be retried; two runs are serialized."""

import time

import psycopg
import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from controlplane.backup.tests.places import empty_database, manage, run

# Several processes, one after the other, which take long on a busy machine.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(400)]
BEFORE, NEXT = ("core", "0012_holds"), ("core", "0013_browser_sessions")
MADE = "SELECT to_regclass('core_browsersession') IS NOT NULL"
TWICE = "SELECT app, name FROM django_migrations GROUP BY app, name HAVING count(*) > 1"
LONGER_THAN_A_START_SECONDS = 60


@pytest.mark.faults
@pytest.mark.smoke
def test_it_gives_up_while_a_long_transaction_lasts_and_succeeds_after_it():
    with empty_database() as target:
        code, _, errors = manage("migrate", "--noinput", *BEFORE, **target)
        assert code == 0, errors
        owner_url = target["DATABASE_OWNER_URL"]
        with psycopg.connect(owner_url, application_name="long") as holder:
            holder.execute("UPDATE core_user SET last_login = now()")
            began = time.monotonic()
            first = manage("migrate", "--noinput", *NEXT, **target)
            took = time.monotonic() - began
            (made,) = holder.execute(MADE).fetchone()
            pid = holder.info.backend_pid
        second = manage("migrate", "--noinput", *NEXT, **target)
        with psycopg.connect(owner_url) as owner:
            (made_then,) = owner.execute(MADE).fetchone()

    assert first[0] == 1
    (line,) = first[2].splitlines()
    assert "for 5s" in line
    assert f"process {pid} (long, for " in line
    assert "Run migrate again." in line
    assert NEXT[1] in first[1]  # Which one it was stands above.
    assert not made
    assert 5 < took < LONGER_THAN_A_START_SECONDS
    assert second[0] == 0, second[2]
    assert made_then


@pytest.mark.faults
def test_two_at_once_apply_each_migration_once():
    with empty_database() as target:
        both = [run("migrate", "--noinput", **target) for _ in range(2)]
        outputs = [process.communicate(timeout=120) for process in both]
        with psycopg.connect(target["DATABASE_OWNER_URL"]) as owner:
            twice = owner.execute(TWICE).fetchall()

    assert [process.returncode for process in both] == [0, 0], outputs
    assert twice == []
    assert sum("No migrations to apply" in output for output, _ in outputs) == 1


@pytest.mark.slow
def test_a_database_that_is_away_is_one_line():
    nowhere = "postgresql://switchgear@127.0.0.1:1/switchgear"

    code, _, errors = manage(
        "migrate", "--noinput", DATABASE_URL=nowhere, DATABASE_OWNER_URL=nowhere
    )

    assert code == 1
    (line,) = errors.splitlines()
    assert "does not respond" in line


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("0016_index_audit_trigrams", "core_audit_search"),
        ("0020_index_contested_instances", "instance_contested"),
    ],
)
def test_index_that_is_half_done_is_built_again(name, index):
    loader = MigrationLoader(connection)
    migration = loader.get_migration("core", name)
    before = loader.project_state([("core", name)], at_end=False)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX {index}")
        cursor.execute(f"CREATE INDEX {index} ON core_heartbeat (at)")

    with connection.schema_editor(atomic=False) as editor:
        migration.apply(before, editor)

    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_indexes WHERE indexname = %s", [index])
        assert cursor.fetchall() != [("core_heartbeat",)]
        assert cursor.rowcount == 1
