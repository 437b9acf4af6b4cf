"""Metrics: content, access, and the part that works without the database."""

import gzip
import math
import threading
import tomllib
from dataclasses import dataclass
from datetime import timedelta

import pytest
import time_machine
from django.conf import settings
from django.db import connection, connections
from django.db.backends.signals import connection_created
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain_text

from controlplane.core import health, heartbeats, metrics
from controlplane.core.clock import db_now
from controlplane.core.errors import Forbidden
from controlplane.core.http.tests.callers import Api, as_role, with_token
from controlplane.core.models import Tick
from controlplane.core.outbox.models import OutboxMessage

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class Status:
    version: int | None = 17
    age_seconds: float | None = 0.4


@pytest.fixture(autouse=True)
def _snapshot(monkeypatch):
    monkeypatch.setattr(health, "snapshot_source", Status)
    monkeypatch.setattr(metrics, "token_check", None)


@pytest.fixture
def no_database():
    settings = connections.settings["default"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(settings, "HOST", "127.0.0.1")
        patch.setitem(settings, "PORT", "9")
        connection.close()
        metrics.scrape_connection.close()
        yield


def scrape(api=None, parse=plain_text, **headers):
    """Return the scraped samples as {(name, labels…): value}."""
    metrics.scrapes.clear()
    api = api or with_token("metrics:read")
    answer = api.client.get("/metrics", headers={**api.headers, **headers})
    assert answer.status_code == 200, answer.content
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in parse(answer.content.decode())
        for sample in family.samples
    }


def status(api):
    return api.client.get("/metrics", headers=api.headers).status_code


def message(number, state, age_seconds=0):
    now = db_now()
    OutboxMessage.objects.create(
        event="switch.engaged",
        event_key=f"audit:{number}",
        destination="slack",
        payload={},
        state=state,
        next_attempt_at=now,
        created_at=now - timedelta(seconds=age_seconds),
    )


def test_the_outbox_the_clockwork_and_the_process_are_told():
    message(1, "pending", age_seconds=90)
    message(2, "pending")
    message(3, "failed")
    message(4, "sent", age_seconds=1000)
    heartbeats.record_heartbeat("worker")
    ran_at = db_now() - timedelta(seconds=11)
    Tick.objects.create(name="outbox.sweep", ran_at=ran_at, ran_by="worker")

    samples = scrape()

    assert samples["switchgear_outbox_pending",] == 2
    assert samples["switchgear_outbox_failed",] == 1
    assert 90 <= samples["switchgear_outbox_oldest_pending_seconds",] < 100
    assert 10 <= samples["switchgear_tick_late_seconds", ("tick", "outbox.sweep")] < 15
    assert 0 <= samples["switchgear_heartbeat_age_seconds", ("process", "worker")] < 5
    for never in (("switchgear_heartbeat_age_seconds", ("process", "beat")),
                  ("switchgear_tick_late_seconds", ("tick", "outbox.purge"))):  # fmt: skip
        assert samples[never] == math.inf
    assert samples["switchgear_snapshot_version",] == 17
    assert samples["switchgear_snapshot_age_seconds",] == 0.4
    assert samples["switchgear_database_up",] == 1
    assert samples["process_resident_memory_bytes",] > 0


def test_scrapes_open_one_connection_among_them():
    opened = []
    metrics.scrape_connection.close()

    def note(**_kwargs):
        opened.append(threading.current_thread())

    connection_created.connect(note)

    metrics.exposition("")
    metrics.exposition("")

    assert len(opened) == 1


def test_a_clock_that_is_ahead_of_postgresql_is_told():
    api = with_token("metrics:read")
    assert abs(scrape(api)["switchgear_clock_offset_seconds",]) < 5

    with time_machine.travel(db_now() + timedelta(hours=1)):
        samples = scrape(api)

    assert 3590 < samples["switchgear_clock_offset_seconds",] < 3610


def test_openmetrics_is_spoken_to_who_asks_for_it():
    samples = scrape(parse=openmetrics, accept="application/openmetrics-text; version=1.0.0")

    assert samples["switchgear_outbox_pending",] == 0


def test_who_may_read():
    assert status(Api()) == 401
    assert status(Api(authorization="Bearer sg_no_such")) == 401
    assert status(with_token("switches:read")) == 403
    assert status(as_role("viewer")) == 200


def test_without_the_database_what_is_in_memory_is_still_told(no_database, monkeypatch):
    monkeypatch.setattr(metrics, "token_check", check)

    samples = scrape(Api(authorization="Bearer good"))

    assert samples["switchgear_database_up",] == 0
    assert samples["switchgear_snapshot_version",] == 17
    assert not [name for name, *_ in samples if name.startswith("switchgear_outbox")]
    assert status(Api(authorization="Bearer bad")) == 403
    assert status(Api(x_api_key="bad")) == 403


def test_without_the_database_nobody_unknown_is_let_in(no_database, monkeypatch):
    assert status(Api(authorization="Bearer good")) == 503
    monkeypatch.setattr(metrics, "token_check", check)
    assert status(Api()) == 503


def check(token, scope):
    assert scope == "metrics:read"
    if token != "good":
        raise Forbidden("no")


def test_a_scrape_is_compressed_for_who_accepts_it_and_kept_for_a_moment():
    api = with_token("metrics:read")
    metrics.scrapes.clear()

    packed = api.client.get("/metrics", headers={**api.headers, "Accept-Encoding": "gzip"})
    message(1, "pending")
    plain = api.client.get("/metrics", headers=api.headers)

    assert packed["Content-Encoding"] == "gzip"
    assert "Content-Encoding" not in plain
    assert gzip.decompress(packed.content) == plain.content
    assert b"\nswitchgear_outbox_pending 0.0\n" in plain.content


def test_the_build_is_told():
    samples = scrape()

    (labels,) = [rest for name, *rest in samples if name == "switchgear_build_info"]
    project = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())["project"]
    assert ("version", project["version"]) in labels
