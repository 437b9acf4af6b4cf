"""The embedded services, real ones: private, killed, orphaned, interrupted."""

import contextlib
import os
import shutil
import signal
import stat
import subprocess
import time
from functools import partial
from pathlib import Path

import psycopg
import pytest
import redis

from controlplane.supervisor.tests import harness
from controlplane.supervisor.tests.harness import (
    assert_nothing_left,
    cluster_of,
    is_up,
    postmaster,
    services,
    start,
)

pytestmark = pytest.mark.faults


@pytest.mark.smoke
def test_both_services_are_real_private_and_kept(data: Path) -> None:
    with start(data) as run:
        run.wait_until_ready()
        found = services(data)

        assert found["supervisor_pid"] == run.process.pid
        assert stat.S_IMODE((data / "run" / "services.json").stat().st_mode) == 0o600
        with psycopg.connect(found["database_owner_url"], autocommit=True) as owner:
            owner.execute("CREATE TABLE kept (word text)")
            owner.execute("INSERT INTO kept VALUES ('가나다')")
            asked = owner.execute(
                "SELECT rolsuper, rolcreatedb, rolcreaterole,"
                " current_setting('server_encoding'), upper('é'), current_setting('fsync')"
                " FROM pg_roles WHERE rolname = current_user"
            ).fetchone()
            assert asked == (False, True, True, "UTF8", "É", "on")
        broker = redis.Redis.from_url(found["redis_url"])
        broker.set("kept", "yes")
        assert broker.config_get("appendonly") == {"appendonly": "yes"}
        passwords = [path.read_text() for path in (data / "secrets").iterdir()]
        listing = "\n".join(harness.command_lines(harness.processes_of(data)))
        assert len(passwords) == 3
        assert not [word for word in passwords if word in listing]
        assert run.end()[0] == 0
        assert_nothing_left(run)

    with start(data) as again:
        again.wait_until_ready()
        found = services(data)
        with psycopg.connect(found["database_owner_url"]) as owner:
            assert owner.execute("SELECT word FROM kept").fetchone() == ("가나다",)
        assert redis.Redis.from_url(found["redis_url"]).get("kept") == b"yes"


def test_nobody_gets_in_without_the_password_and_the_application_owns_nothing(
    data: Path,
) -> None:
    with start(data) as run:
        run.wait_until_ready()
        found = services(data)
        url = found["database_url"]
        password = url.split(":")[2].split("@")[0]

        for wrong in (
            url.replace(password, "guess"),
            url.replace(f":{password}", ""),
            url.replace("switchgear_app", "postgres"),
        ):
            with pytest.raises(psycopg.OperationalError):
                psycopg.connect(wrong, connect_timeout=2, passfile="/dev/null")
        with (
            psycopg.connect(url, autocommit=True) as application,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            application.execute("CREATE TABLE mine (id int)")
        elsewhere = found["redis_url"].split("@")[1]
        for address in (f"redis://{elsewhere}", f"redis://:guess@{elsewhere}"):
            with pytest.raises(redis.AuthenticationError):
                redis.Redis.from_url(address).ping()


@pytest.mark.parametrize("name", ["postgres", "redis"])
def test_a_killed_service_starts_again_at_its_address(data: Path, name: str) -> None:
    with start(data) as run:
        run.wait_until_ready()
        found = services(data)
        victim = (
            postmaster(cluster_of(data))
            if name == "postgres"
            else harness.read_redis_pid(found["redis_url"])
        )

        os.kill(victim, signal.SIGKILL)

        run.wait_for(f"{name} stopped (killed by signal 9); restarting it")
        harness.wait_until(lambda: is_up(data), 10, run)
        harness.wait_until(lambda: harness.ping_redis(found["redis_url"]), 10, run)
        assert services(data) == found
        assert run.end()[0] == 0
        assert_nothing_left(run)


@pytest.mark.smoke
def test_after_kill_minus_nine_nobody_is_left_and_the_next_run_recovers(data: Path) -> None:
    with start(data, stand_ins={"worker": "import time; time.sleep(600)"}) as run:
        run.wait_until_ready()
        owner = psycopg.connect(services(data)["database_owner_url"], autocommit=True)
        owner.execute("CREATE TABLE kept AS SELECT 1 AS one")
        run.process.kill()
        with owner, pytest.raises(psycopg.OperationalError):
            owner.execute("SELECT pg_sleep(60)")

        with start(data, port=run.port) as again:
            again.wait_until_ready()
            run.process.wait(1)
            with psycopg.connect(services(data)["database_owner_url"]) as owner:
                assert owner.execute("SELECT one FROM kept").fetchone() == (1,)
            assert again.end()[0] == 0
            assert_nothing_left(again)


def test_after_kill_minus_nine_of_everything_the_next_run_recovers(data: Path) -> None:
    with start(data) as run:
        run.wait_until_ready()
        for pid in [run.process.pid, *harness.processes_of(data)]:
            with contextlib.suppress(ProcessLookupError):  # It may have followed its parent.
                os.kill(pid, signal.SIGKILL)
    assert (cluster_of(data) / "postmaster.pid").exists()

    with start(data) as again:
        again.wait_until_ready()
        assert is_up(data)


def test_a_stale_pid_file_whose_number_another_process_has_does_not_matter(
    data: Path,
) -> None:
    with start(data) as run:
        run.wait_until_ready()
        lines = (cluster_of(data) / "postmaster.pid").read_text().splitlines()
        run.end()
    owner = (cluster_of(data) / "PG_VERSION").stat()
    uid = owner.st_uid if os.geteuid() == 0 else None
    bystander = subprocess.Popen(["sleep", "60"], user=uid)
    stale = cluster_of(data) / "postmaster.pid"
    stale.write_text("\n".join([str(bystander.pid), *lines[1:]]) + "\n")
    os.chown(stale, owner.st_uid, owner.st_gid)
    try:
        with start(data) as again:
            again.wait_until_ready()

            assert is_up(data)
            assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_an_interrupted_creation_is_started_over(data: Path) -> None:
    with start(data) as run:
        harness.wait_until(
            lambda: bool(list(data.glob("postgres.new-*/cluster/PG_VERSION"))), 10, run
        )
        run.process.kill()
        run.process.wait(5)
    assert not (data / "postgres").exists()

    with start(data) as again:
        again.wait_until_ready()
        assert is_up(data)
        assert not list(data.glob("postgres.new-*"))


def test_lost_passwords_are_replaced(data: Path) -> None:
    with start(data) as run:
        run.wait_until_ready()
        before = services(data)["database_url"]
        run.end()
    shutil.rmtree(data / "secrets")

    with start(data) as again:
        again.wait_until_ready()
        assert is_up(data)
        assert services(data)["database_url"].split("@")[0] != before.split("@")[0]


def test_a_signal_while_the_services_start_ends_the_run(data: Path) -> None:
    for delay in (0.1, 0.4, 0.8, 1.2):
        with start(data.with_name(f"data-{delay}")) as run:
            time.sleep(delay)

            code, seconds = run.end()

            assert code in (0, -signal.SIGTERM)  # the latter before it took the signals over
            assert seconds < 9
            harness.wait_until(partial(_is_gone, run.data), 3)


def _is_gone(data: Path) -> bool:
    return not harness.processes_of(data)
