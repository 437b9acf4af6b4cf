"""The probe drill: the manifests' probes on real processes during outages."""

import contextlib
import threading
import time

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from controlplane.tests.installation import SERVICE_VARIABLES, Installation, wait_until
from controlplane.tests.kubelet import Pod

pytestmark = [pytest.mark.faults, pytest.mark.timeout(400)]
ROLES = ("web", "worker", "beat", "watchdog", "dataplane")
AWAY_SECONDS = 50.0
"""Longer than three failures of the liveness probe."""


@pytest.fixture(scope="module")
def installation(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drill") / "var"
    one = Installation(folder)
    try:
        one.start()
        yield one
    finally:
        one.end()


@pytest.fixture
def start(installation, tmp_path):
    """Start a pod of each named role, per its manifest, and wait as kubelet would."""
    services = {name.upper(): value for name, value in installation.services().items()}
    kept = {k: v for k, v in installation.environment.items() if k not in SERVICE_VARIABLES}
    pods = []

    def started(*roles, **variables):
        new = {}
        for role in roles:
            environment = {
                **kept,
                **{name: services[name] for name in SERVICE_VARIABLES[:3]},
                "SWITCHGEAR_DATA_DIR": str(tmp_path / role),
                "SWITCHGEAR_STATIC_DIR": str(installation.data_dir / "static"),
                "SECRET_KEY": (installation.data_dir / "secrets" / "secret_key").read_text(),
                **variables,
            }
            new[role] = Pod(role, environment, tmp_path / f"{role}.txt")
            pods.append(new[role])
        for role, pod in new.items():
            print(f"{role}: started after {pod.start():.1f} s")
        return new

    yield started
    for pod in pods:
        pod.end()


def become(pods, wanted, seconds=40):
    for role, status in wanted.items():
        wait_until(
            lambda pod=pods[role], status=status: pod.ready.ask() == status,
            seconds,
            lambda role=role: f"{role}: {pods[role].ready.ask()} {pods[role].read_output()}",
        )


def test_without_postgresql_all_stay_alive_and_only_data_planes_ready(installation, start):
    pods = start(*ROLES)
    become(pods, dict.fromkeys(ROLES, 200))

    with installation.suspended("postgres"):
        become(pods, {**dict.fromkeys(ROLES, 503), "dataplane": 200})
        time.sleep(AWAY_SECONDS)
        assert {role: pod.live.ask() for role, pod in pods.items()} == dict.fromkeys(ROLES, 200)

    become(pods, dict.fromkeys(ROLES, 200))
    assert {role: pod.restarts for role, pod in pods.items()} == dict.fromkeys(ROLES, 0)


def test_without_redis_the_web_is_degraded_and_nothing_is_started_anew(installation, start):
    pods = start(*ROLES)
    become(pods, dict.fromkeys(ROLES, 200))
    host = {"Host": "10.244.7.31"}

    with installation.suspended("redis-server"):
        become(pods, {"web": 200, "dataplane": 200, "watchdog": 200, "worker": 503, "beat": 503})
        body = httpx.get(f"{pods['web'].url}/health/ready", headers=host, timeout=5).json()
        assert body["status"] == "degraded"
        time.sleep(AWAY_SECONDS)
        assert {role: pod.live.ask() for role, pod in pods.items()} == dict.fromkeys(ROLES, 200)

    become(pods, dict.fromkeys(ROLES, 200))
    assert {role: pod.restarts for role, pod in pods.items()} == dict.fromkeys(ROLES, 0)


def test_a_worker_that_hangs_is_started_anew(start):
    pod = start("worker")["worker"]
    assert pod.live.ask() == 200

    pod.freeze()

    limit = pod.live.period * pod.live.failures + 3 * 3 + 15
    took = wait_until(lambda: pod.restarts == 1, limit)
    print(f"found to hang after {took:.0f} s")


def test_processes_end_within_their_grace_with_a_poll_held_and_a_socket_open(installation, start):
    token = installation.token("switches:read")
    pods = start(*ROLES)
    become(pods, dict.fromkeys(ROLES, 200))
    headers = {"Authorization": f"Bearer {token}"}
    url = pods["web"].url
    etag = httpx.get(f"{url}/api/v1/snapshot", headers=headers, timeout=5).headers["ETag"]
    polls = {}

    def poll(role):
        with contextlib.suppress(httpx.HTTPError):
            answer = httpx.get(
                f"{pods[role].url}/api/v1/snapshot?wait=25",
                headers={**headers, "If-None-Match": etag},
                timeout=40,
            )
            polls[role] = answer.status_code

    held = [threading.Thread(target=poll, args=(role,)) for role in ("web", "dataplane")]
    for thread in held:
        thread.start()
    address = url.replace("http://", "ws://") + "/ws/live/"
    with connect(address, additional_headers=headers, open_timeout=20) as socket:
        time.sleep(2)
        took = {role: pod.term() for role, pod in pods.items()}
        closed = _closed(socket)
    for thread in held:
        thread.join(10)

    print({role: round(seconds, 1) for role, seconds in took.items()})
    assert polls == {"web": 304, "dataplane": 304}
    assert closed.rcvd is not None  # It was said goodbye, not cut.
    assert max(took.values()) < 15


def _closed(socket):
    """Return the socket's close, after reading pending messages."""
    while True:
        try:
            socket.recv(timeout=5)
        except ConnectionClosed as closed:
            return closed
