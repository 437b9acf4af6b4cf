"""The OpenAPI document matches real responses of the SLO API."""

from datetime import timedelta

import pytest

from controlplane.core.canonical import timestamp
from controlplane.core.clock import db_now
from controlplane.openapi.tests.documents import api_document
from controlplane.openapi.tests.test_responses import complaints
from slo.arithmetic.minutes import last_ended
from slo.models import Alert, SloStatus

from .factories import counted, slo

pytestmark = pytest.mark.django_db

SLOS = "/api/v1/slos/"
ONE = "/api/v1/slos/{name}"


@pytest.fixture(scope="module")
def document():
    return api_document()


def test_answers_about_slos_are_what_it_says(document, admin):
    one = slo("a", kind="latency", threshold_ms=300, actions=[{"do": "hold_ramps"}])
    last, now = last_ended(db_now()), db_now()
    counted(one, [(last - 200 + n, n * 98, n * 100) for n in range(201)])
    status = SloStatus.objects.create(slo=one, minute=last, state="ok", since=now)
    start = timestamp(now - timedelta(hours=1))
    rule = {"long": "1h", "short": "5m", "burn_rate": 1, "severity": "page"}
    backtest = {"start": start, "rules": [rule]}
    prometheus = {"type": "prometheus", "url": "http://p:9090", "good": "g", "total": "t"}

    requests = [
        (SLOS, "get", admin.get("/slos/")),
        (f"{ONE}/", "get", admin.get("/slos/a/")),
        (SLOS, "post", admin.post("/slos/", {"name": "b", "target": 0.9, "source": prometheus})),
        (f"{ONE}/", "put", admin.send("put", "/slos/a/", {"target": 0.99})),
        (f"{ONE}/", "put", admin.send("put", "/slos/c/", {"target": 0.99, "dry_run": True})),
        (f"{ONE}/", "put", admin.send("put", "/slos/a/", {"target": 9})),
        (f"{ONE}/status", "get", admin.get("/slos/a/status")),
        (f"{ONE}/status", "get", admin.get("/slos/b/status")),
        (f"{ONE}/series", "get", admin.get(f"/slos/a/series?from={start}")),
        (f"{ONE}/backtest", "post", admin.post("/slos/a/backtest", {**backtest, "ticks": True})),
        (f"{ONE}/backtest", "post", admin.post("/slos/a/backtest", backtest)),
        (f"{ONE}/", "delete", admin.send("delete", "/slos/b/", {})),
        (f"{ONE}/", "get", admin.get("/slos/b/")),
    ]

    assert status.state == "ok"
    for path, method, response in requests:
        assert complaints(document, path, method, response) == [], (method, path, response.json())
    assert requests[-4][2].json()["results"]
    assert requests[-3][2].json()["alerts"]


def test_answers_about_exclusions_and_alerts_are_what_it_says(document, admin):
    one, now = slo("a"), db_now()
    alert = Alert.objects.create(
        kind="burn", slo=one, rule="r", subject="a", severity="critical", label="page", summary="s",
        opened_at=now, firing_at=now,
    )  # fmt: skip
    span = {
        "starts_at": timestamp(now - timedelta(hours=1)),
        "ends_at": timestamp(now),
        "reason": "Database moved, CHG-7",
    }

    exclusion = admin.post("/slos/a/exclusions/", span)
    removed = f"/slos/a/exclusions/{exclusion.json()['id']}/"
    requests = [
        (f"{ONE}/exclusions/", "post", exclusion),
        (f"{ONE}/exclusions/", "get", admin.get("/slos/a/exclusions/")),
        (f"{ONE}/exclusions/{{exclusion_id}}/", "delete", admin.send("delete", removed, {})),
        (f"{ONE}/exclusions/", "get", admin.get("/slos/a/exclusions/?removed=true")),
        ("/api/v1/alerts/", "get", admin.get("/alerts/")),
        ("/api/v1/alerts/{alert_id}/", "get", admin.get(f"/alerts/{alert.pk}/")),
        ("/api/v1/alerts/{alert_id}/ack", "post", admin.post(f"/alerts/{alert.pk}/ack", {})),
        (
            "/api/v1/alerts/{alert_id}/postmortem",
            "get",
            admin.get(f"/alerts/{alert.pk}/postmortem"),
        ),
    ]

    for path, method, response in requests:
        assert complaints(document, path, method, response) == [], (method, path, response.json())


def test_answers_about_openslo_are_what_it_says(document, admin):
    slo("a")
    exported = admin.get("/openslo/")

    requests = [
        ("get", exported),
        ("post", admin.post("/openslo/", exported.json())),
        ("post", admin.post("/openslo/", {**exported.json(), "dry_run": True})),
        ("post", admin.post("/openslo/", {"documents": [{}]})),
    ]

    for method, response in requests:
        problems = complaints(document, "/api/v1/openslo/", method, response)
        assert problems == [], (method, response.json())
