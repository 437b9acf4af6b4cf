"""The fleet with real processes: a relay that stops cleanly leaves it, one that dies is silent."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from controlplane.core.fleet.statuses import SILENT_AFTER
from controlplane.tests.installation import (
    ROOT,
    SERVICE_VARIABLES,
    Installation,
    free_port,
    running,
    wait_until,
)

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
REPORT_SECONDS = 10.0


@contextlib.contextmanager
def relay(name: str, folder: Path, upstream: str, token: str) -> Iterator[subprocess.Popen[bytes]]:
    """A relay process, which knows its upstream's address and a token."""
    kept = {k: v for k, v in os.environ.items() if k not in {*SERVICE_VARIABLES, "SECRET_KEY"}}
    environment = {
        **kept,
        "PLANE_NAME": name,
        "SWITCHGEAR_TOKEN": token,
        "SWITCHGEAR_DATA_DIR": str(folder / name),
    }
    arguments = ["dataplane", "--upstream", upstream, "--port", str(free_port())]
    with (folder / f"{name}.log").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the server and its worker."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(10)


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    with running(tmp_path / "console") as started:
        yield started


def test_relay_that_ends_leaves_the_fleet_and_one_that_dies_is_silent(
    installation: Installation, tmp_path: Path
) -> None:
    token = installation.token("relay")
    with (
        installation.client(installation.token("switches:read")) as client,
        relay("eu-1", tmp_path, installation.url, token) as ending,
        relay("eu-2", tmp_path, installation.url, token) as dying,
    ):

        def list_fleet() -> dict[str, dict[str, Any]]:
            found = client.get("/api/v1/fleet/").json()
            return {each["name"]: each for each in found["results"]}

        def are_current(*names: str) -> bool:
            with contextlib.suppress(httpx.HTTPError):
                fleet = list_fleet()
                return all(fleet.get(name, {}).get("state") == "current" for name in names)
            return False

        wait_until(lambda: are_current("eu-1", "eu-2"), 60, list_fleet)
        (plane,) = (each for each in list_fleet().values() if each["kind"] == "data plane")
        assert list_fleet()["eu-1"]["upstreams"] == [plane["name"]]
        assert list_fleet()["eu-1"]["version"] == plane["version"]

        ending.send_signal(signal.SIGTERM)
        assert ending.wait(15) == 0
        wait_until(lambda: "eu-1" not in list_fleet(), REPORT_SECONDS, list_fleet)
        kill(dying)
        seconds = SILENT_AFTER.total_seconds() + REPORT_SECONDS
        wait_until(lambda: list_fleet()["eu-2"]["state"] == "silent", seconds, list_fleet)
        assert "eu-1" not in list_fleet()
