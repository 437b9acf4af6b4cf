"""A kill during a backup leaves no partial file; a killed restore can be resumed or repeated."""

import os
import signal
import time

import httpx
import psycopg
import pytest
from django.conf import settings

from controlplane.backup import creation, file
from controlplane.backup.tests import places
from controlplane.core.tests.processes import on_test_database
from controlplane.tests.installation import free_port, wait_until

pytestmark = [
    pytest.mark.faults,
    pytest.mark.timeout(400),
    pytest.mark.django_db(transaction=True),
]
TABLES = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public' AND tablename <> %s"


@pytest.fixture
def backup(tmp_path):
    places.stopped("nl2sql")
    creation.create(tmp_path / "one", places.source_url())
    return tmp_path / "one"


def tables(target):
    with psycopg.connect(target["DATABASE_OWNER_URL"]) as owner:
        return owner.execute(TABLES, ["core_restoring"]).fetchone()[0]


def sessions(target):
    with psycopg.connect(target["DATABASE_OWNER_URL"]) as owner:
        return owner.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        ).fetchone()[0]


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=30)


def test_killed_while_it_dumps_leaves_no_file_under_the_name(tmp_path):
    places.stopped("nl2sql")
    path = places.program(
        tmp_path / "bin", "pg_dump", '"$REAL" "$@"; head -c 3000000 /dev/zero; exec sleep 90'
    )
    target = tmp_path / "backups" / "one"
    target.parent.mkdir()
    addresses = settings.ENV.database
    here = {
        "DATABASE_URL": on_test_database(addresses.url),
        "DATABASE_OWNER_URL": on_test_database(addresses.owner_url),
    }
    process = places.run("backup", "create", str(target), PATH=path, **here)
    part = target.with_name("one.part")
    wait_until(lambda: part.exists() and part.stat().st_size > 0, 60, process.poll)

    kill(process)

    assert os.listdir(target.parent) == ["one.part"]
    code, _, errors = places.manage("backup", "create", str(target), **here)
    assert code == 0, errors
    assert os.listdir(target.parent) == ["one"]
    file.read_manifest(target)


def test_killed_while_it_fills_the_tables_begins_again(tmp_path, backup):
    path = places.program(
        tmp_path / "bin", "pg_restore", '(head -c 100000; sleep 20; cat) | "$REAL" "$@"'
    )
    with places.empty_database() as target:
        process = places.run("backup", "restore", str(backup), PATH=path, **target)
        marked = "SELECT to_regclass('core_restoring')"
        with psycopg.connect(target["DATABASE_OWNER_URL"], autocommit=True) as owner:
            wait_until(lambda: owner.execute(marked).fetchone()[0], 90, process.poll)
        time.sleep(1)

        kill(process)

        # What pg_restore reads ends with whoever wrote it, and its transaction with that.
        wait_until(lambda: sessions(target) == 1, 60, lambda: sessions(target))
        assert tables(target) == 0
        code, _, errors = places.manage("backup", "restore", str(backup), **target)
        assert code == 0, errors
        assert tables(target) > 50


def test_killed_after_the_tables_are_there_goes_on_to_the_new_epoch(backup):
    with places.empty_database() as target:
        process = places.run("backup", "restore", str(backup), **target)
        wait_until(lambda: tables(target) > 50, 120, process.poll)

        kill(process)

        with psycopg.connect(target["DATABASE_OWNER_URL"]) as owner:
            (epoch,) = owner.execute("SELECT epoch::text FROM switches_publication").fetchone()
        assert epoch == file.read_manifest(backup).epoch
        code, _, errors = places.manage("backup", "restore", str(backup), **target)
        assert code == 0, errors
        assert "interrupted" in errors
        with psycopg.connect(target["DATABASE_OWNER_URL"]) as owner:
            (epoch,) = owner.execute("SELECT epoch::text FROM switches_publication").fetchone()
        assert epoch != file.read_manifest(backup).epoch


def test_a_data_plane_that_polls_meanwhile_answers_on_and_takes_the_new_epoch(tmp_path):
    places.stopped("kept")
    with places.empty_database() as target:
        creation.create(tmp_path / "zero", places.source_url())
        _well(places.manage("backup", "restore", str(tmp_path / "zero"), **target))
        _well(places.manage("provision", **target))
        token = _well(
            places.manage("token", "create", "poller", "--scopes", "switches:read", **target)
        ).split()[-1]
        _well(places.manage("backup", "create", str(tmp_path / "one"), **target))
        port = free_port()
        plane = places.run(
            *("dataplane", "--port", str(port)),
            quiet=True,
            SWITCHGEAR_DATA_DIR=str(tmp_path / "plane"),
            **target,
        )
        try:
            poller = Poller(f"http://127.0.0.1:{port}/api/v1/snapshot", token)
            wait_until(poller.answers, 90, plane.poll)
            lost = ("--feature", "lost", "--for", "24h", "--reason", "OpenAI 5xx, INC-4411")
            _well(places.manage("killswitch", "engage", *lost, **target))
            wait_until(lambda: poller.answers() and "lost" in poller.text, 30, lambda: poller.text)
            left, failed = poller.epoch, 0
            with psycopg.connect(target["DATABASE_OWNER_URL"], autocommit=True) as owner:
                owner.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
            process = places.run("backup", "restore", str(tmp_path / "one"), **target)
            while process.poll() is None:
                failed += not poller.answers()
                time.sleep(0.05)
            assert process.returncode == 0, process.communicate()
            wait_until(lambda: poller.answers() and poller.epoch != left, 60, lambda: poller.text)
        finally:
            plane.terminate()
            plane.wait(timeout=30)
    assert failed == 0
    assert "kept" in poller.text
    assert "lost" not in poller.text


class Poller:
    """A service that polls, with its last response."""

    def __init__(self, url, token):
        self._url, self._headers = url, {"Authorization": f"Bearer {token}"}
        self.text = self.epoch = ""

    def answers(self):
        try:
            answer = httpx.get(self._url, headers=self._headers, timeout=10)
        except httpx.HTTPError:
            return False
        if answer.status_code != 200:
            return False
        self.text, self.epoch = answer.text, answer.json()["epoch"]
        return True


def _well(done):
    code, output, errors = done
    assert code == 0, errors
    return output
