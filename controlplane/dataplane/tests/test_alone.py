"""The data plane alone under the real server, over real sockets."""

import contextlib
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

from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.lines import wait_until
from controlplane.dataplane.tests.test_following import engage, make_token

ROOT = Path(__file__).resolve().parents[3]
TOKEN = {"X-API-Key": "sg_reader0001_secret"}


@contextlib.contextmanager
def granian(environment: Mapping[str, str]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the server as a process until the test ends; yield its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "granian", "--interface", "asgi", "--no-ws"),
            *("--port", str(port), "controlplane.dataplane:app"),
        ],
        cwd=ROOT,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process, f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=10)
        process.kill()


def answers(url: str, path: str) -> bool:
    try:
        # Reading certificates for a plain connection would take longer than the request.
        return httpx.get(url + path, timeout=2, verify=False).status_code == 200
    except httpx.TransportError:
        return False


def variables(following: Following, data: Path) -> dict[str, str]:
    url = following.config.database_url
    return {
        **os.environ,
        "DATABASE_URL": url,
        "DATABASE_OWNER_URL": url + "?application_name=owner",
        "REDIS_URL": following.config.redis_url,
        "SWITCHGEAR_DATA_DIR": str(data),
    }


def test_service_polls_is_told_asks_and_is_refused_a_body_over_the_limit(
    idle: Following, tmp_path: Path
) -> None:
    make_token()
    with granian(variables(idle, tmp_path)) as (process, url):
        wait_until(lambda: answers(url, "/health/ready/data"), 15)
        with httpx.Client(base_url=url, headers=TOKEN, timeout=5, verify=False) as service:
            first = service.get("/api/v1/snapshot")
            assert first.status_code == 200
            assert "Date" in first.headers  # Clients correct their clock by it.
            known = {"If-None-Match": first.headers["ETag"]}
            unchanged = service.get("/api/v1/snapshot", headers=known)
            assert (unchanged.status_code, unchanged.content) == (304, b"")

            engage("finance")
            wait_until(lambda: service.get("/api/v1/snapshot", headers=known).status_code == 200, 4)

            blocked = service.post("/api/v1/check", json={"segments": ["finance"]}).json()
            assert (blocked["allowed"], blocked["switch"]) == (False, "segment:finance")
            head = service.head("/api/v1/snapshot")
            assert (head.status_code, head.content) == (200, b"")
            assert int(head.headers["Content-Length"]) > 0
            assert service.get("/api/v1/snapshot/").status_code == 308

            split_event = (b" " * 8192 for _ in range(9))  # Chunked, without Content-Length.
            assert service.post("/api/v1/check", content=b" " * 65537).status_code == 413
            assert service.post("/api/v1/check", content=split_event).status_code == 413
            assert service.post("/api/v1/check", content=b"{}").status_code == 200
        process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        process.wait(timeout=10)
        assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("name", "value"), [("DATABASE_URL", "mysql://x"), ("REDIS_URL", "not a url")]
)
def test_wrong_variable_ends_the_start_and_is_named(name: str, value: str) -> None:
    with granian({**os.environ, name: value}) as (process, _):
        output, _ = process.communicate(timeout=15)
        assert name in output
        assert process.returncode != 0
