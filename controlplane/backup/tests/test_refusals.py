"""Restores that are refused, their messages, and the lock until a restore ends."""

from urllib.parse import urlsplit

import psycopg
import pytest
from django.conf import settings
from django.db import connection

from controlplane.backup import creation, database, file, pg_programs
from controlplane.backup.tests import places
from controlplane.core import health
from controlplane.tests.installation import free_port

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]


@pytest.fixture
def backup(tmp_path):
    places.stopped("nl2sql")
    creation.create(tmp_path / "one", places.source_url())
    return tmp_path / "one"


def owner_of(target):
    return psycopg.connect(target["DATABASE_OWNER_URL"], autocommit=True)


@pytest.mark.faults
def test_what_somebody_else_keeps_there_is_never_dropped(backup):
    with places.empty_database() as target:
        assert places.manage("migrate", "--noinput", **target)[0] == 0
        with owner_of(target) as owner:
            owner.execute("CREATE TABLE invoices AS SELECT 4711 AS number")

        code, _, errors = places.manage("backup", "restore", str(backup), "--over-fresh", **target)

        with owner_of(target) as owner:
            kept = owner.execute("SELECT number FROM invoices").fetchall()
            ours = owner.execute("SELECT count(*) FROM core_user").fetchone()

    assert code == 1
    assert "contains other data, such as invoices" in errors
    assert kept == [(4711,)]
    assert ours == (0,)


@pytest.mark.faults
def test_an_interrupted_first_start_gives_way_too(backup):
    with places.empty_database() as target:
        assert places.manage("migrate", "core", "0002", "--noinput", **target)[0] == 0

        code, _, errors = places.manage("backup", "restore", str(backup), "--over-fresh", **target)

    assert code == 0, errors


@pytest.mark.faults
def test_one_that_is_being_migrated_is_left_alone_and_not_migrated_while_it_is_restored(backup):
    held = "SELECT pg_advisory_lock_shared(%s)"
    with places.empty_database() as target:
        assert places.manage("migrate", "core", "0002", "--noinput", **target)[0] == 0
        with owner_of(target) as owner:
            owner.execute(held, [database.MIGRATING])
            early = places.manage("backup", "restore", str(backup), "--over-fresh", **target)
            (left,) = owner.execute("SELECT to_regclass('core_user')::text").fetchone()
        with owner_of(target) as owner:
            owner.execute(held.replace("_shared", ""), [database.MIGRATING])
            meanwhile = places.manage("migrate", "--noinput", **target)
        late = places.manage("backup", "restore", str(backup), "--over-fresh", **target)

    assert (early[0], left) == (1, "core_user")
    assert "is being migrated" in early[2]
    assert meanwhile[0] == 1
    assert "is being restored" in meanwhile[2]
    assert late[0] == 0, late[2]


@pytest.mark.faults
def test_what_a_start_made_after_an_interrupted_restore_gives_way_too(backup):
    with places.empty_database() as target:
        with owner_of(target) as owner:
            owner.execute("CREATE TABLE core_restoring AS SELECT 'another'::text AS sha256")
        assert places.manage("migrate", "--noinput", **target)[0] == 0

        code, _, errors = places.manage("backup", "restore", str(backup), "--over-fresh", **target)

        with owner_of(target) as owner:
            engaged = owner.execute("SELECT switch_id FROM switches_episode").fetchall()
    assert code == 0, errors
    assert engaged == [("feature:nl2sql",)]


@pytest.mark.faults
@pytest.mark.smoke
def test_a_start_between_a_killed_restore_and_its_repetition_is_no_harm(backup):
    """The mark of this very backup is there, and the tables behind it are a first start's."""
    with places.empty_database() as target:
        with owner_of(target) as owner:
            owner.execute("CREATE TABLE core_restoring (sha256 text NOT NULL)")
            sha256 = file.read_manifest(backup).sha256
            owner.execute("INSERT INTO core_restoring VALUES (%s)", [sha256])
        assert places.manage("migrate", "--noinput", **target)[0] == 0

        without = places.manage("backup", "restore", str(backup), **target)
        over = places.manage("backup", "restore", str(backup), "--over-fresh", **target)

        with owner_of(target) as owner:
            engaged = owner.execute("SELECT switch_id FROM switches_episode").fetchall()
    assert without[0] == 1
    assert "--over-fresh" in without[2]
    assert over[0] == 0, over[2]
    assert engaged == [("feature:nl2sql",)]


@pytest.mark.slow
def test_the_application_has_to_be_pointed_to_the_same_database(backup):
    with places.empty_database() as target, places.empty_database() as other:
        if target["DATABASE_URL"] == target["DATABASE_OWNER_URL"]:
            # With one login the two addresses have to differ in writing, to be two at all.
            other["DATABASE_URL"] += "?application_name=other"
        mixed = {**target, "DATABASE_URL": other["DATABASE_URL"]}

        code, _, errors = places.manage("backup", "restore", str(backup), **mixed)

        with owner_of(target) as owner:
            left = owner.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
            assert left.fetchone() == (0,)

    assert code == 1
    assert "name different databases" in errors


@pytest.mark.slow
@pytest.mark.parametrize("command", ["create", "restore"])
def test_postgresql_that_is_away_is_one_line_without_a_password(backup, tmp_path, command):
    here = urlsplit(settings.ENV.database.owner_url)
    away = here._replace(netloc=f"somebody:open-sesame@127.0.0.1:{free_port()}").geturl()
    path = tmp_path / "new" if command == "create" else backup

    code, _, errors = places.manage(
        "backup", command, str(path), DATABASE_URL=away, DATABASE_OWNER_URL=away
    )

    assert code == 1
    assert "Traceback" not in errors
    assert "PostgreSQL: connection failed" in errors
    assert "open-sesame" not in errors
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_a_database_that_is_no_installations_is_said_to_be_none(tmp_path):
    with places.empty_database() as target:
        code, _, errors = places.manage("backup", "create", str(tmp_path / "one"), **target)

    assert (code, "Traceback" in errors) == (1, False)
    assert "has no Switchgear installation" in errors


def test_nothing_starts_in_a_database_that_is_being_restored(monkeypatch):
    monkeypatch.setattr(health, "_migrated", False)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE core_restoring (sha256 text NOT NULL)")
        try:
            meanwhile = health.report_startup()
        finally:
            cursor.execute("DROP TABLE core_restoring")

    assert meanwhile.http_status == 503
    assert meanwhile.document["checks"]["migrations"] == "pending"
    assert health.report_startup().document["checks"]["migrations"] == "applied"


def test_what_the_address_leaves_open_is_as_for_any_connection(monkeypatch):
    monkeypatch.setenv("PGPASSFILE", "/etc/switchgear/pgpass")
    monkeypatch.setenv("PGUSER", "somebody")

    found = pg_programs.build_environment(
        "postgresql://owner@db.example.com/switchgear?sslmode=verify-full"
    )

    assert found["PGPASSFILE"] == "/etc/switchgear/pgpass"
    assert (found["PGUSER"], found["PGHOST"]) == ("owner", "db.example.com")
    assert (found["PGDATABASE"], found["PGSSLMODE"]) == ("switchgear", "verify-full")
