"""A start with something to serve: services are answered before PostgreSQL or the console is."""

import hashlib
import http.client
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from controlplane.dataplane.storage.snapshot_file import SnapshotDisk, signing_key
from controlplane.dataplane.tests.copies import CREDENTIAL, SAVED
from controlplane.documentation import manifest
from controlplane.supervisor.tests import harness
from controlplane.supervisor.tests.harness import OUTSIDE_SERVICES, assert_nothing_left, start

pytestmark = pytest.mark.faults

SECRET_KEY = "a-secret-of-these-tests-that-is-long-enough-0123456789"
SECRET = "s" * 43
TOKEN = f"sg_reader0001_{SECRET}"
ENVIRONMENT = {**OUTSIDE_SERVICES, "SECRET_KEY": SECRET_KEY}  # Neither of them answers.
MIGRATING = "print('migrating', flush=True); import time; time.sleep({seconds})"


@pytest.fixture
def kept(data: Path) -> Path:
    """A data directory with a signed copy, as a run before has left it."""
    now = datetime.now(UTC)
    credential = replace(
        CREDENTIAL,
        digest=hashlib.sha256(SECRET.encode()).digest(),
        expires_at=(now + timedelta(days=1)).timestamp(),
    )
    saved = replace(SAVED, tokens={b"reader0001": credential}, confirmed_at=now)
    SnapshotDisk(data / "snapshot", signing_key(SECRET_KEY)).save(saved)
    return data


def status(port: int, method: str, path: str) -> int:
    return fetch(port, method, path)[0]


def fetch(port: int, method: str, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request(method, path, headers={"X-API-Key": TOKEN})
        response = connection.getresponse()
        return response.status, response.read().decode()
    except OSError:
        return 0, ""
    finally:
        connection.close()


def test_services_are_answered_from_the_copy_while_migrations_run(kept: Path) -> None:
    stand_ins = {"migrate": MIGRATING.format(seconds=600)}
    (kept / "docs" / "recover").mkdir(parents=True)
    (kept / "docs" / "recover" / "index.html").write_text("Recover")
    manifest.write_manifest(kept / "docs", sources="")
    environment = {**ENVIRONMENT, "SWITCHGEAR_DOCS_DIR": str(kept / "docs")}
    began = time.monotonic()

    with start(kept, stand_ins=stand_ins, environment=environment) as run:
        harness.wait_until(lambda: status(run.port, "GET", "/api/v1/snapshot") == 200, 20, run)
        print(f"first answer after {time.monotonic() - began:.2f} s")

        run.wait_for("migrating")
        assert status(run.port, "GET", "/api/v1/snapshot") == 200
        assert status(run.port, "GET", "/") == 200
        assert status(run.port, "GET", "/docs/recover/") == 200
        found, page = fetch(run.port, "GET", "/emergency/")
        assert found == 200
        assert "Stop something now" in page
        missing, page = fetch(run.port, "GET", "/docs/missing/")
        assert missing == 404
        assert '<meta http-equiv="refresh" content="5">' in page
        assert status(run.port, "GET", "/health/ready") == 503
        assert status(run.port, "POST", "/api/v1/switches/segment/finance/engage") == 503
        assert run.end()[0] == 0
        assert_nothing_left(run)


def test_the_console_takes_over_once_it_is_ready(kept: Path) -> None:
    with start(kept, environment=ENVIRONMENT) as run:
        run.wait_until_ready()

        # The web process of these tests answers 200 to everything.
        assert {status(run.port, "GET", "/health/ready") for _ in range(20)} == {200}
        lines = harness.command_lines(harness.processes_of(kept))
        assert [line for line in lines if "controlplane.stand_in" in line] == []


def test_a_step_that_fails_is_tried_again_while_there_is_something_to_serve(kept: Path) -> None:
    failing = (
        "import os, pathlib, sys; mark = pathlib.Path(os.environ['SWITCHGEAR_DATA_DIR'], 'mark');"
        "again = mark.exists(); mark.touch(); sys.exit(None if again else 'not yet')"
    )

    with start(kept, stand_ins={"migrate": failing}, environment=ENVIRONMENT) as run:
        run.wait_for("migrate failed (exit code 1); retrying in 5 s:")
        run.wait_until_ready()
