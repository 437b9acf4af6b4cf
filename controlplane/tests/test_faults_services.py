"""Outages of Redis or PostgreSQL: working functions, reports, and recovery without restarts."""

import os
import signal
import time

import httpx
import pytest

from controlplane.tests.installation import alive, running, wait_until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]
REASON = "provider outage, 5xx on completions since 02:10"


@pytest.fixture
def installation(tmp_path):
    with running(tmp_path / "var") as one:
        yield one


@pytest.fixture
def client(installation):
    scopes = ("switches:read", "switches:write", "audit:read")
    with installation.client(installation.token(*scopes)) as one:
        yield one


def engage(client, switch, **more):
    scope, key = switch.split(":")
    body = {"reason": REASON, "expires_in": "24h", **more}
    return client.post(f"/api/v1/switches/{scope}/{key}/engage", json=body)


def stopped(client):
    return {entry["id"] for entry in client.get("/api/v1/snapshot").json()["switches"]}


def ready(client):
    return client.get("/health/ready")


@pytest.mark.smoke
def test_redis_hung_costs_latency_and_nothing_else(installation, client):
    with installation.suspended("redis-server"):
        wait_until(lambda: ready(client).json()["status"] == "degraded", 10)
        assert ready(client).status_code == 200
        assert ready(client).json()["checks"]["redis"] != "healthy"

        started = time.monotonic()
        assert engage(client, "segment:finance").status_code == 200
        assert time.monotonic() - started < 1.5
        assert wait_until(lambda: "segment:finance" in stopped(client), 3) < 2.5

        body = {"expires_in": "2s", "on_expiry": "release"}
        assert engage(client, "feature:chat", **body).status_code == 200
        wait_until(lambda: "feature:chat" not in stopped(client), 15)

    wait_until(lambda: ready(client).json()["status"] == "ready", 30, installation.read_output)
    assert engage(client, "feature:search").status_code == 200
    wait_until(lambda: "feature:search" in stopped(client), 2)


def test_redis_killed_comes_back_by_itself(installation, client):
    os.kill(installation.pid_of("redis-server"), signal.SIGKILL)

    assert engage(client, "segment:finance").status_code == 200
    wait_until(lambda: "segment:finance" in stopped(client), 3)
    wait_until(lambda: ready(client).json()["status"] == "ready", 30, installation.read_output)


@pytest.mark.smoke
def test_postgresql_hung_polls_go_on_and_writes_say_when_to_retry(installation, client):
    assert engage(client, "segment:finance").status_code == 200
    wait_until(lambda: "segment:finance" in stopped(client), 2)

    with installation.suspended("postgres"):
        refused = engage(client, "feature:frozen")  # On its way when nobody knew yet.
        assert refused.status_code == 503
        time.sleep(1)
        ages = []
        for _ in range(3):
            answer = client.get("/api/v1/snapshot")
            assert answer.status_code == 200
            ages.append(float(answer.headers["Switchgear-Age"]))
            time.sleep(1)
        assert ages == sorted(set(ages))
        assert ages[-1] > 3

        for path in ("/api/v1/switches/feature/chat/engage", "/api/v1/switches/feature/chat/undo"):
            started = time.monotonic()
            answer = client.post(path, json={"reason": REASON, "expires_in": "24h"})
            assert answer.status_code == 503
            assert int(answer.headers["Retry-After"]) > 0
            assert answer.headers["Content-Type"].startswith("application/problem+json")
            assert time.monotonic() - started < 10
        assert ready(client).status_code == 503
        assert client.get("/health/live").status_code == 200
        assert client.get("/health/ready/data").status_code == 200

    wait_until(lambda: ready(client).status_code == 200, 30, installation.read_output)
    wait_until(
        lambda: engage(client, "feature:after").status_code == 200, 10, installation.read_output
    )
    wait_until(lambda: "feature:after" in stopped(client), 3)
    time.sleep(1)
    assert "feature:frozen" not in stopped(client), "refused with 503, and done all the same"


def test_postgresql_killed_comes_back_and_nothing_needs_a_restart(installation, client):
    assert engage(client, "segment:finance").status_code == 200
    web = installation.pid_of("granian")

    os.kill(installation.pid_of("postgres", "-D"), signal.SIGKILL)

    assert stopped(client) == {"segment:finance"}
    wait_until(lambda: _answers(client), 60, installation.read_output)
    assert engage(client, "feature:after").status_code == 200
    wait_until(lambda: "feature:after" in stopped(client), 3)
    assert installation.pid_of("granian") == web
    wait_until(lambda: ready(client).json()["status"] == "ready", 30, installation.read_output)


def test_worker_and_beat_killed_together_delay_an_expiry_by_seconds(installation, client):
    body = {"expires_in": "3s", "on_expiry": "release"}
    assert engage(client, "feature:chat", **body).status_code == 200

    with installation.suspended("celery"):
        late = wait_until(lambda: "feature:chat" not in stopped(client), 20)

    assert late < 15


@pytest.mark.smoke
def test_a_term_signal_ends_everything_within_ten_seconds(installation):
    pids = list(installation.tree())

    started = time.monotonic()
    assert installation.stop(within=10) == 0

    assert time.monotonic() - started < 10
    assert not [pid for pid in pids if alive(pid)]
    assert not (installation.data_dir / "run" / "services.json").exists()
    with pytest.raises(httpx.ConnectError):
        httpx.get(installation.url)


@pytest.mark.smoke
def test_a_killed_supervisor_leaves_no_child_and_a_new_run_recovers(installation, client):
    assert engage(client, "segment:finance").status_code == 200
    pids = list(installation.tree())

    installation.process.kill()
    installation.process.wait(5)

    wait_until(lambda: not [pid for pid in pids if alive(pid)], 10, lambda: installation.tree())
    installation.start()
    assert stopped(client) == {"segment:finance"}
    assert "intact" in installation.manage("audit", "verify")


def _answers(client):
    try:
        return client.get("/api/v1/switches/").status_code == 200
    except httpx.TransportError:
        return False
