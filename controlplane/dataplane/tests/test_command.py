"""`manage.py dataplane` as a real process: requirements, degraded starts, and shutdown."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import pytest
from django.core.management import ManagementUtility

from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.lines import wait_until
from controlplane.dataplane.tests.test_following import engage, make_token

ROOT = Path(__file__).resolve().parents[3]
TOKEN = {"X-API-Key": "sg_reader0001_secret"}
Process = subprocess.Popen[str]


@pytest.fixture
def nowhere(tmp_path: Path) -> dict[str, str]:
    """Environment variables with unreachable PostgreSQL and Redis, and a folder of their own."""
    return {
        **os.environ,
        "SWITCHGEAR_DATA_DIR": str(tmp_path / "data"),
        "DATABASE_URL": "postgresql://switchgear@127.0.0.1:1/switchgear",
        "DATABASE_OWNER_URL": "postgresql://owner@127.0.0.1:1/switchgear",
        "REDIS_URL": "redis://127.0.0.1:1/0",
    }


def run(environment: Mapping[str, str], *options: str, folder: Path = ROOT) -> Process:
    return subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "dataplane", *options],
        cwd=folder,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextlib.contextmanager
def serving(
    environment: Mapping[str, str], *options: str, folder: Path = ROOT
) -> Iterator[tuple[Process, str]]:
    """Run the command until the test ends; yield its address once it is live."""
    port = free_port()
    process = run(environment, "--port", str(port), *options, folder=folder)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: status(url + "/health/live") == 200, 20)
        yield process, url
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=10)
        process.kill()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def status(url: str) -> int | None:
    """Return the status over a new connection; None if nothing answers."""
    try:
        # Reading certificates for a plain connection would take longer than the request.
        return httpx.get(url, headers=TOKEN, timeout=5, verify=False).status_code
    except httpx.TransportError:
        return None


@pytest.mark.slow
def test_without_postgresql_and_redis_it_is_alive_not_ready_and_says_so_in_json(
    nowhere: dict[str, str], tmp_path: Path
) -> None:
    with serving(nowhere, folder=tmp_path) as (process, url):
        ready = httpx.get(url + "/health/ready/data", verify=False)
        assert ready.status_code == 503
        assert int(ready.headers["Retry-After"]) > 0
        assert status(url + "/api/v1/snapshot") == 503
        assert process.poll() is None

        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=10)

    events = [json.loads(line) for line in errors.splitlines()]
    assert "dataplane.database_lost" in [event["event"] for event in events]


@pytest.mark.slow
def test_postgresql_that_comes_later_is_found(idle: Following, tmp_path: Path) -> None:
    make_token()
    idle.database.cut()
    idle.redis.cut()
    with serving(followed(idle, tmp_path)) as (_, url):
        assert status(url + "/api/v1/snapshot") == 503

        idle.database.mend()
        wait_until(lambda: status(url + "/api/v1/snapshot") == 200, 6)
        assert status(url + "/health/ready/data") == 200


@pytest.mark.faults
def test_each_of_several_processes_follows_the_database(idle: Following, tmp_path: Path) -> None:
    make_token()
    with serving(followed(idle, tmp_path), "--workers", "3") as (process, url):
        assert len(workers(process)) == 3
        wait_until(lambda: status(url + "/health/ready/data") == 200, 6)
        engage("finance")

        def all_know() -> bool:
            found = {
                httpx.get(url + "/api/v1/snapshot", headers=TOKEN).headers.get("Switchgear-Version")
                for _ in range(30)
            }
            return found == {"1"}

        wait_until(all_know, 6)


@pytest.mark.faults
@pytest.mark.smoke
def test_killed_worker_is_replaced(nowhere: dict[str, str]) -> None:
    with serving(nowhere, "--workers", "2") as (process, url):
        first = workers(process)
        os.kill(first[0], signal.SIGKILL)

        wait_until(lambda: len(set(workers(process)) - set(first)) == 1, 10)
        wait_until(lambda: status(url + "/health/live") == 200, 5)


@pytest.mark.faults
@pytest.mark.smoke
@pytest.mark.parametrize("number", ["1", "2"])
def test_sigterm_ends_it_in_time_and_well(nowhere: dict[str, str], number: str) -> None:
    with serving(nowhere, "--workers", number) as (process, _):
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=10)

        assert process.returncode == 0
        assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "mysql://x"),
        ("REDIS_URL", "not a url"),
        ("MAX_HELD", "many"),
        ("ENVIRONMENT_NAME", "a\nb"),
    ],
)
def test_wrong_variable_is_one_line_and_status_2(
    nowhere: dict[str, str], name: str, value: str
) -> None:
    process = run({**nowhere, name: value}, "--port", str(free_port()))
    output, errors = process.communicate(timeout=20)

    assert process.returncode == 2
    assert output == ""
    (line,) = errors.splitlines()
    assert line.startswith(f"{name}: ")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--port", "0"),
        ("--port", "65536"),
        ("--workers", "0"),
        ("--workers", "65"),
        ("--port", "x"),
    ],
)
def test_wrong_option_is_named(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        ManagementUtility(["manage.py", "dataplane", option, value]).execute()

    assert ended.value.code == 2
    assert option in capsys.readouterr().err.splitlines()[-1]


def test_port_of_somebody_else_is_not_shared_with_them(nowhere: dict[str, str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        process = run(nowhere, "--port", str(taken.getsockname()[1]))
        _, errors = process.communicate(timeout=20)

    assert process.returncode == 2
    (line,) = errors.splitlines()
    assert "in use" in line


def followed(idle: Following, tmp_path: Path) -> dict[str, str]:
    """Environment variables of the test database and Redis."""
    url = idle.config.database_url
    return {
        **os.environ,
        "SWITCHGEAR_DATA_DIR": str(tmp_path / "data"),
        "DATABASE_URL": url,
        "DATABASE_OWNER_URL": url + "?application_name=owner",
        "REDIS_URL": idle.config.redis_url,
    }


def workers(process: Process) -> list[int]:
    """Return the serving processes: the server's children without multiprocessing's helper."""
    found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(pid) for pid in found.split() if b"tracker" not in command_line(pid)]


def command_line(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return b"tracker"  # Gone since it was listed.
