"""A backup of a real database, made while others write, and restored into an empty one."""

import os
import subprocess
import threading

import psycopg
import pytest
from django.conf import settings
from django.db import connections

from controlplane.accounts.models import BrowserSession
from controlplane.accounts.people.session_store import SessionStore
from controlplane.backup import creation, database, file, pg_programs
from controlplane.backup.tests import places
from controlplane.core.errors import Unavailable
from controlplane.core.models import AuditEntry
from controlplane.core.threads import OWNER_NAME

# Several processes each, one after the other, which take long on a busy machine.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]


def dumped(path, *arguments):
    """Return `pg_restore`'s text output for the dump in a backup."""
    with file.open_backup(path) as (_, dump):
        done = subprocess.run(
            [pg_programs.find("pg_restore", at_least=18), *arguments, "--file", "-"],
            input=dump.read(),
            capture_output=True,
            check=True,
        )
    return done.stdout.decode()


def audit_rows(path):
    text = dumped(path, "--data-only", "--table", "core_auditentry")
    lines = text.partition("FROM stdin;\n")[2].partition("\n\\.")[0]
    return [line.split("\t")[0] for line in lines.splitlines()]


def test_it_is_of_one_moment_while_others_write(tmp_path):
    places.stopped("before")
    stop = threading.Event()

    def write():
        number = 0
        while not stop.is_set():
            places.stopped(f"meanwhile-{(number := number + 1)}")
        connections.close_all()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        manifest = creation.create(tmp_path / "one", places.source_url())
    finally:
        stop.set()
        writer.join()

    rows = audit_rows(tmp_path / "one")
    assert len(rows) == manifest.audit_rows
    assert str(manifest.audit_head) in rows
    assert (
        manifest.anchor[manifest.audit_head] == AuditEntry.objects.get(pk=manifest.audit_head).hash
    )
    assert AuditEntry.objects.count() > manifest.audit_rows


def test_no_session_and_no_secret_key_is_in_it(tmp_path):
    session = SessionStore()
    session["who"] = "somebody"
    session.create()
    assert BrowserSession.objects.exists()

    creation.create(tmp_path / "one", places.source_url())

    text = dumped(tmp_path / "one")
    assert "COPY public.core_user " in text
    assert BrowserSession.objects.get().session_key not in text
    assert settings.SECRET_KEY not in text
    assert settings.SECRET_KEY.encode() not in (tmp_path / "one").read_bytes()


def test_no_password_is_in_a_command_line(tmp_path, monkeypatch):
    record = tmp_path / "arguments"
    path = places.program(
        tmp_path / "bin", "pg_dump", f'echo "$@" > {record}; cat /proc/$$/cmdline >> {record};'
        ' exec "$REAL" "$@"'
    )  # fmt: skip
    monkeypatch.setenv("PATH", path)

    creation.create(tmp_path / "one", places.source_url())

    password = psycopg.conninfo.conninfo_to_dict(places.source_url())["password"]
    assert "--format=custom" in record.read_text()
    assert password not in record.read_text()


def test_sessions_carry_the_name_of_the_owner_that_is_never_ended(tmp_path, monkeypatch):
    record = tmp_path / "name"
    path = places.program(tmp_path / "bin", "pg_dump", f'echo "$PGAPPNAME" > {record}; exit 3')
    monkeypatch.setenv("PATH", path)

    with database.connect(places.source_url()) as session:
        own = database.fetch_value(session, "SELECT current_setting('application_name')")
    with pytest.raises(Unavailable):
        creation.create(tmp_path / "one", places.source_url())

    assert own.startswith(OWNER_NAME)
    assert record.read_text().startswith(OWNER_NAME)


def test_what_pg_dump_says_is_told_and_nothing_is_left(tmp_path, monkeypatch):
    path = places.program(tmp_path / "bin", "pg_dump", 'echo "pg_dump: error: disk" >&2; exit 3')
    monkeypatch.setenv("PATH", path)

    with pytest.raises(Unavailable, match="pg_dump failed with exit code 3: pg_dump: error: disk"):
        creation.create(tmp_path / "one", places.source_url())

    assert os.listdir(tmp_path) == ["bin"]


def test_an_older_pg_dump_on_path_is_passed_over(tmp_path, monkeypatch):
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "pg_dump").write_text("#!/bin/sh\necho 'pg_dump (PostgreSQL) 9.6.1'\n")
    (folder / "pg_dump").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    assert pg_programs.find("pg_dump", at_least=18).parent != folder
    with pytest.raises(Unavailable, match="pg_dump of PostgreSQL 99 or later was not found"):
        pg_programs.find("pg_dump", at_least=99)


def test_of_those_that_can_the_oldest_is_taken(tmp_path, monkeypatch):
    """PostgreSQL 16 and older reject the output of a newer `pg_restore`."""
    monkeypatch.setenv("PATH", places.program(tmp_path / "bin", "pg_restore", "exit 3"))

    for server in (14, 16):
        program = pg_programs.find("pg_restore", at_least=server)
        version = subprocess.run([program, "--version"], capture_output=True, check=True, text=True)
        major = version.stdout.partition("(PostgreSQL) ")[2].partition(".")[0]
        assert server <= int(major) <= 16

    assert pg_programs.find("pg_restore", at_least=18).parent == tmp_path / "bin"


def test_each_version_on_path_is_looked_at(tmp_path, monkeypatch):
    for major in (18, 14):
        script = tmp_path / str(major) / "pg_dump"
        script.parent.mkdir()
        script.write_text(f"#!/bin/sh\necho 'pg_dump (PostgreSQL) {major}.1'\n")
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/18:{tmp_path}/14:{os.environ['PATH']}")

    assert pg_programs.find("pg_dump", at_least=14) == tmp_path / "14" / "pg_dump"
    assert pg_programs.find("pg_dump", at_least=18) == tmp_path / "18" / "pg_dump"


@pytest.mark.slow
def test_restored_it_has_everything_but_a_new_epoch_and_no_right_to_rewrite(tmp_path):
    places.stopped("nl2sql")
    backup = tmp_path / "one"
    manifest = creation.create(backup, places.source_url())

    with places.empty_database() as target:
        code, output, errors = places.manage("backup", "restore", str(backup), **target)
        assert code == 0, errors
        again = places.manage("backup", "restore", str(backup), **target)
        with psycopg.connect(target["DATABASE_OWNER_URL"]) as owner:
            epoch, version = owner.execute(
                "SELECT epoch::text, version FROM switches_publication"
            ).fetchone()
            trail = owner.execute(
                "SELECT action, reason FROM core_auditentry WHERE id > %s ORDER BY id",
                [manifest.audit_head],
            ).fetchall()
            engaged = owner.execute("SELECT switch_id FROM switches_episode").fetchall()
            left = owner.execute("SELECT to_regclass('core_restoring')").fetchone()
        refusals = [_refusal(target, statement) for statement in REWRITES]

    assert manifest.epoch in output
    assert epoch != manifest.epoch
    assert version == manifest.version + 1
    assert [action for action, _ in trail] == ["backup.restored", "epoch.began"]
    assert all("one of 20" in reason for _, reason in trail)
    assert engaged == [("feature:nl2sql",)]
    assert left == (None,)
    assert again[0] == 1
    assert "not empty" in again[2]
    assert refusals == ["permission denied", "permission denied", "append-only"]


REWRITES = (
    ("DATABASE_URL", "DELETE FROM core_auditentry"),
    ("DATABASE_URL", "UPDATE core_auditentry SET reason = ''"),
    ("DATABASE_OWNER_URL", "DELETE FROM core_auditentry"),
)


def _refusal(target, rewriting):
    login, statement = rewriting
    with psycopg.connect(target[login]) as database:
        if target["DATABASE_URL"] == target["DATABASE_OWNER_URL"] and login == "DATABASE_URL":
            database.execute("SET ROLE switchgear_runtime")
        with pytest.raises(psycopg.errors.InsufficientPrivilege) as caught:
            database.execute(statement)
    text = str(caught.value)
    return next(words for words in ("append-only", "permission denied") if words in text)


@pytest.mark.slow
def test_one_of_a_later_release_is_refused_before_anything_is_done(tmp_path):
    with psycopg.connect(places.source_url(), autocommit=True) as owner:
        owner.execute(
            "INSERT INTO django_migrations (app, name, applied)"
            " VALUES ('core', '9999_of_tomorrow', now())"
        )
    try:
        creation.create(tmp_path / "one", places.source_url())
    finally:
        with psycopg.connect(places.source_url(), autocommit=True) as owner:
            owner.execute("DELETE FROM django_migrations WHERE name = '9999_of_tomorrow'")

    with places.empty_database() as target:
        code, _, errors = places.manage("backup", "restore", str(tmp_path / "one"), **target)
        with psycopg.connect(target["DATABASE_OWNER_URL"]) as owner:
            tables = owner.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
            assert tables.fetchone() == (0,)

    assert code == 1
    assert "later release" in errors
    assert "core.9999_of_tomorrow" in errors


@pytest.mark.faults
@pytest.mark.smoke
def test_a_fresh_installation_gives_way_and_a_used_one_does_not(tmp_path):
    places.stopped("nl2sql")
    creation.create(tmp_path / "one", places.source_url())
    restore = ("backup", "restore", str(tmp_path / "one"), "--over-fresh")

    with places.empty_database() as target:
        assert places.manage("migrate", "--noinput", **target)[0] == 0
        assert places.manage("provision", **target)[0] == 0
        first = places.manage(*restore, **target)
        second = places.manage(*restore, **target)

    assert first[0] == 0, first[2]
    assert second[0] == 1
    assert "in use" in second[2]


@pytest.mark.faults
def test_another_secret_key_is_told_of(tmp_path):
    creation.create(tmp_path / "one", places.source_url())
    check = ("backup", "check", str(tmp_path / "one"))

    same = places.manage(*check, SECRET_KEY=settings.SECRET_KEY)
    other = places.manage(*check, SECRET_KEY="x" * 60)

    assert (same[0], same[2]) == (0, "")
    assert other[0] == 0
    assert "second factors" in other[2]


@pytest.mark.slow
def test_the_command_leaves_a_row_in_the_trail(tmp_path):
    addresses = settings.ENV.database
    on = places.on_test_database
    here = {"DATABASE_URL": on(addresses.url), "DATABASE_OWNER_URL": on(addresses.owner_url)}

    code, _, errors = places.manage("backup", "create", str(tmp_path / "one"), **here)

    assert code == 0, errors
    entry = AuditEntry.objects.order_by("-id").first()
    assert entry.action == "backup.created"
    assert file.read_manifest(tmp_path / "one").audit_head == entry.id - 1
