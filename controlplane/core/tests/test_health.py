"""Probes: their responses, and their time limit when a dependency hangs."""

import logging
import socket
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from django.db import connection, connections

from controlplane.core import health, heartbeats
from controlplane.core.degradation_levels import CRITICAL, Cause
from controlplane.core.models import Heartbeat

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class Status:
    version: int | None = 17
    age_seconds: float | None = 0.4123
    disk: Cause | None = None


@pytest.fixture(autouse=True)
def snapshot(monkeypatch):
    """The data plane's snapshot status, as seen by the probes."""
    status = Status()
    monkeypatch.setattr(health, "snapshot_source", lambda: status)
    monkeypatch.setattr(health, "_migrated", False)
    return status


@pytest.fixture
def black_hole():
    """A server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@contextmanager
def database_at(port):
    """While inside, new connections go to another port; the present one is dropped."""
    before = threading.active_count()
    settings = connections.settings["default"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(settings, "HOST", "127.0.0.1")
        patch.setitem(settings, "PORT", str(port))
        connection.close()
        yield
        ends = time.monotonic() + 6
        while threading.active_count() > before:  # Who is still being asked gives up by itself.
            assert time.monotonic() < ends
            time.sleep(0.05)
        connection.close()


@pytest.fixture
def no_database():
    with database_at(9):
        yield


@pytest.fixture
def frozen_database(black_hole):
    with database_at(black_hole.getsockname()[1]):
        yield
        black_hole.close()  # So that those who still wait for it give up.


@pytest.fixture
def everybody_lives():
    for name in ("worker", "beat", "watchdog"):
        heartbeats.record_heartbeat(name)


def timed(ask):
    started = time.monotonic()
    answer = ask()
    return answer, time.monotonic() - started


def test_ready_when_all_is_well(client, everybody_lives):
    answer = client.get("/health/ready")

    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.json() == {
        "status": "ready",
        "checks": {
            "database": "healthy",
            "redis": "healthy",
            "worker": "healthy",
            "beat": "healthy",
            "watchdog": "healthy",
            "disk": "healthy",
            "snapshot_age_seconds": 0.412,
        },
    }


@pytest.mark.parametrize("name", ["worker", "beat", "watchdog"])
def test_degraded_without_one_that_does_the_work(client, everybody_lives, name):
    Heartbeat.objects.filter(name=name).update(at="2026-01-01T00:00:00Z")

    answer = client.get("/health/ready")

    assert answer.status_code == 200
    assert answer.json()["status"] == "degraded"
    assert answer.json()["checks"][name] == "unhealthy"


def test_degraded_by_a_read_only_database(client, everybody_lives, monkeypatch):
    settings = connections.settings["default"]
    options = {**settings["OPTIONS"], "options": "-c default_transaction_read_only=on"}
    monkeypatch.setitem(settings, "OPTIONS", options)

    answer = client.get("/health/ready")

    assert answer.status_code == 200
    assert answer.json()["status"] == "degraded"
    assert answer.json()["checks"]["database"] == "read_only"


def test_not_ready_while_another_process_answers_on_the_port(client, everybody_lives, monkeypatch):
    monkeypatch.setattr(health, "is_starting", lambda: True)

    answer = client.get("/health/ready")

    assert (answer.status_code, answer.json()["status"]) == (503, "not_ready")


@pytest.mark.parametrize("port", ["refused", "frozen"])
def test_degraded_without_redis(client, everybody_lives, settings, black_hole, port):
    frozen = black_hole.getsockname()[1]
    settings.REDIS_URL = f"redis://127.0.0.1:{frozen if port == 'frozen' else 9}/0"

    answer, seconds = timed(lambda: client.get("/health/ready"))

    assert answer.status_code == 200
    assert answer.json()["status"] == "degraded"
    assert answer.json()["checks"]["redis"] == "unhealthy"
    assert answer.json()["checks"]["worker"] == "healthy"
    assert seconds < 2


def test_not_ready_without_the_database(client, everybody_lives, no_database, caplog):
    answer, seconds = timed(lambda: client.get("/health/ready"))

    assert answer.status_code == 503
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    events = [record.msg for record in caplog.records if record.name == health.__name__]
    assert [line["event"] for line in events] == ["probe_readiness_failed"]
    assert events[0]["checks"]["database"] == "unhealthy"
    assert answer.json()["status"] == "not_ready"
    checks = answer.json()["checks"]
    assert checks["database"] == "unhealthy"
    assert (checks["worker"], checks["beat"]) == ("unknown", "unknown")
    assert checks["redis"] == "healthy"
    assert checks["snapshot_age_seconds"] == 0.412
    assert seconds < 2


def test_a_frozen_database_holds_up_no_probe_and_costs_no_thread_each(client, frozen_database):
    client.get("/health/ready")  # May start the thread that asks each store.
    before = threading.active_count()

    for _ in range(3):
        answer, seconds = timed(lambda: client.get("/health/ready"))
        assert answer.status_code == 503
        assert seconds < 2

    assert threading.active_count() <= before


def test_started_once_migrated_and_with_a_snapshot(client, snapshot):
    snapshot.version = None
    waiting = client.get("/health/startup")
    snapshot.version = 0
    begun = client.get("/health/startup")

    assert waiting.status_code == 503
    assert waiting.json()["checks"] == {"migrations": "applied", "snapshot": "missing"}
    assert begun.status_code == 200
    assert begun.json()["status"] == "started"


def test_not_started_without_the_database(client, no_database):
    answer = client.get("/health/startup")

    assert answer.status_code == 503
    assert answer.json()["checks"]["migrations"] == "pending"


def test_where_the_data_plane_runs_elsewhere(client, everybody_lives, monkeypatch):
    monkeypatch.setattr(health, "snapshot_source", None)

    assert client.get("/health/ready").json()["checks"]["snapshot_age_seconds"] is None
    assert client.get("/health/startup").json()["checks"]["snapshot"] == "elsewhere"
    assert client.get("/health/startup").status_code == 200
    assert client.get("/health/ready/data").status_code == 503


def test_live_asks_nobody(client, frozen_database, settings):
    settings.REDIS_URL = "redis://127.0.0.1:9/0"

    answer, seconds = timed(lambda: client.get("/health/live"))

    assert answer.status_code == 200
    assert seconds < 0.5
    assert client.get("/health/ready/data").status_code == 200


def test_probes_only_answer_reading(client):
    assert client.post("/health/ready").status_code == 405
    assert client.head("/health/live").status_code == 200


@pytest.mark.usefixtures("everybody_lives")
def test_a_full_disk_is_degraded_and_named(client, snapshot):
    snapshot.disk = Cause(CRITICAL, "disk", "The disk is full.")

    answer = client.get("/health/ready")

    assert answer.status_code == 200
    assert answer.json()["status"] == "degraded"
    assert answer.json()["checks"]["disk"] == "unhealthy"
    assert answer.json()["checks"]["disk_trouble"] == "The disk is full."
