"""`exec`: services that live as long as one command."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from controlplane.supervisor.tests import harness

pytestmark = pytest.mark.faults

EXEC = [sys.executable, "-m", "controlplane.supervisor", "exec", "--"]
SHOW = (
    "import json, os, psycopg, redis;"
    "psycopg.connect(os.environ['DATABASE_URL']).execute('SELECT 1');"
    "psycopg.connect(os.environ['DATABASE_OWNER_URL'], autocommit=True)"
    ".execute('CREATE DATABASE test_switchgear');"
    "redis.Redis.from_url(os.environ['REDIS_URL']).ping();"
    "print(json.dumps(dict(os.environ)))"
)


def run_exec(*command: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*EXEC, *command],
        cwd=harness.ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.smoke
def test_a_command_gets_services_of_its_own_and_they_go_with_it() -> None:
    done = run_exec(
        sys.executable, "-c", SHOW, SECRET_KEY="the shell's", DATABASE_URL="postgresql://wrong"
    )

    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    data = Path(seen["SWITCHGEAR_DATA_DIR"])
    assert "SECRET_KEY" not in seen
    assert "switchgear_app" in seen["DATABASE_URL"]
    assert "switchgear_owner" in seen["DATABASE_OWNER_URL"]
    assert not data.parent.exists()
    assert not harness.processes_of(data.parent)


@pytest.mark.parametrize(
    ("source", "code"),
    [("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", 137)],
)
def test_the_exit_code_is_the_commands(source: str, code: int) -> None:
    assert run_exec(sys.executable, "-c", source).returncode == code


def test_a_command_that_is_not_there_is_one_line() -> None:
    done = run_exec("no-such-command")

    assert done.returncode == 127
    assert done.stderr.startswith("switchgear: no-such-command can't be started: ")
    assert len(done.stderr.splitlines()) == 1


def test_given_services_are_used_as_they_are() -> None:
    done = run_exec(
        *(sys.executable, "-c", "import json, os; print(json.dumps(dict(os.environ)))"),
        TEST_DATABASE_URL="postgresql://me@db.example/test",
        TEST_REDIS_URL="redis://broker.example/3",
        DATABASE_OWNER_URL="postgresql://production",
    )

    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["DATABASE_URL"] == "postgresql://me@db.example/test"
    assert seen["REDIS_URL"] == "redis://broker.example/3"
    assert "DATABASE_OWNER_URL" not in seen


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_the_command_and_ends_everything(tmp_path: Path, signum: int) -> None:
    process, data = _start_sleeper(tmp_path)

    process.send_signal(signum)

    assert process.wait(10) == 128 + signum
    harness.wait_until(lambda: not harness.processes_of(data), 2)
    assert not data.exists()


def test_kill_minus_nine_takes_the_command_and_the_services_along(tmp_path: Path) -> None:
    process, data = _start_sleeper(tmp_path)
    assert len(harness.processes_of(data)) > 3

    process.kill()

    process.wait(5)
    harness.wait_until(lambda: not harness.processes_of(data), 5)
    shutil.rmtree(data)


def _start_sleeper(tmp_path: Path) -> "tuple[subprocess.Popen[bytes], Path]":
    place = tmp_path / "place"
    source = (
        "import os, pathlib, time;"
        f"pathlib.Path({str(place)!r}).write_text(os.environ['SWITCHGEAR_DATA_DIR']);"
        "time.sleep(600)"
    )
    process = subprocess.Popen([*EXEC, sys.executable, "-c", source], cwd=harness.ROOT)
    harness.wait_until(lambda: place.exists() and bool(place.read_text()), 20)
    return process, Path(place.read_text()).parent


def test_it_costs_seconds_at_most() -> None:
    before = time.monotonic()

    run_exec("true")

    assert time.monotonic() - before < 20


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has another user to step down to")
def test_as_root_a_closed_temporary_directory_works(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    before = set(Path("/var/lib/switchgear").glob("exec-*"))

    done = run_exec(sys.executable, "-c", SHOW, TMPDIR=str(closed))

    assert done.returncode == 0, done.stderr
    assert set(Path("/var/lib/switchgear").glob("exec-*")) == before
    assert not list(closed.iterdir())
    assert tempfile.gettempdir() != str(closed)
