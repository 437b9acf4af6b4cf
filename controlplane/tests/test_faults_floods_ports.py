"""Floods of a data plane's own port, and of a web process that may open few files."""

import resource
import time
from pathlib import Path

import httpx
import pytest

from controlplane.dataplane.tests.processes import Server, addresses, data_plane
from controlplane.notify.interactions.tests.slack_requests import SECRET
from controlplane.tests.connection_flood import flood, get, post
from controlplane.tests.installation import free_port, running, wait_until
from controlplane.tests.operators import MAKE_LEE, Operators
from controlplane.tests.poller import polling

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
MAX_SECONDS = 2.0
BUILD_UP_SECONDS = 3.0
FREE_FILES = 100
JSON = "Content-Type: application/json"


@pytest.fixture(scope="module")
def operators(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ports") / "var"
    with running(folder, SLACK_SIGNING_SECRET=SECRET) as installation:
        installation.manage("shell", "-v0", "-c", MAKE_LEE)
        yield Operators(installation)


@pytest.fixture(scope="module")
def plane(operators, tmp_path_factory):
    """A separate data plane with a port of its own."""
    folder = tmp_path_factory.mktemp("plane") / "data"
    with data_plane(addresses(operators.installation), folder) as server:
        yield server


def silence(_operators):
    return ""


def snapshots_of_strangers(_operators):
    return get("/api/v1/snapshot", "X-API-Key: sg_no_token")


def snapshots_of_one_token(operators):
    return get("/api/v1/snapshot", f"X-API-Key: {operators.write}")


def unread_snapshots(operators):
    return get("/api/v1/snapshot", f"X-API-Key: {operators.write}").replace(
        "Connection: close\r\n", ""
    )


def streams(operators):
    return get("/api/v1/snapshot/stream", f"X-API-Key: {operators.write}")


def held_polls(operators):
    key = f"X-API-Key: {operators.write}"
    known = operators.program.get("/api/v1/snapshot").headers["ETag"]
    return get("/api/v1/snapshot?wait=30", key, f"If-None-Match: {known}")


def beginnings(operators):
    """Return a report whose body never arrives."""
    request = post("/api/v1/report", "", JSON, f"X-API-Key: {operators.read}")
    return request.replace("Length: 0", "Length: 9")


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        (silence, "silent"),
        (snapshots_of_strangers, "ask"),
        (snapshots_of_one_token, "ask"),
        (unread_snapshots, "unread"),
        (streams, "ask"),
        (held_polls, "ask"),
        (beginnings, "ask"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_flood_of_a_data_plane_keeps_no_kill_from_services(operators, plane, kind, mode):
    request, port = kind(operators), httpx.URL(plane.url).port

    with (
        flood(port, request, mode=mode) as told,
        polling(plane.url, operators.poll) as polls,
    ):
        time.sleep(BUILD_UP_SECONDS)
        found = operators.measured()
        version = operators.program.get("/api/v1/snapshot").headers["Switchgear-Version"]
        applied = wait_until(lambda: polls.version >= int(version), 5, lambda: polls.version)

    slowest = max(polls.seconds)
    print(f"{kind.__name__}: {dict(told)}, poll max {slowest:.3f}, applied {applied:.2f}")
    assert polls.failures == []
    assert slowest < MAX_SECONDS
    assert applied < MAX_SECONDS
    assert max(map(max, found.values())) < MAX_SECONDS


def test_web_out_of_files_answers_on_open_connections_and_recovers(operators):
    installation = operators.installation
    pid = web_worker(installation)
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    used = open_files(pid)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + FREE_FILES, before[1]))
    try:
        with flood(installation.port) as told:
            time.sleep(BUILD_UP_SECONDS)
            peak = open_files(pid)
            found = operators.measured()
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    with polling(installation.url, operators.poll) as polls:
        time.sleep(1)

    print(f"{dict(told)}, {used} files, {peak} in the flood: {found}")
    assert peak >= used + FREE_FILES - 10
    assert max(map(max, found.values())) < MAX_SECONDS
    assert polls.failures == []
    assert max(polls.seconds) < MAX_SECONDS


LIMITED = (
    "import os, resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (400, 400)); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)


def test_data_plane_that_may_open_few_files_logs_a_warning(operators, tmp_path):
    port = free_port()
    arguments = ["-c", LIMITED, "manage.py", "dataplane", "--port", str(port)]
    variables = {**addresses(operators.installation), "SWITCHGEAR_DATA_DIR": str(tmp_path)}
    server = Server(arguments, variables, tmp_path / "said.txt", port)

    try:
        server.start()
    finally:
        server.kill()

    (warning,) = server.logged("server.few_connections")
    assert warning["connections"] == 100


def web_worker(installation):
    tree = installation.tree()
    main = installation.pid_of("granian", "controlplane.asgi")
    return max(pid for pid, line in tree.items() if "controlplane.asgi" in line or pid == main)


def open_files(pid):
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))
