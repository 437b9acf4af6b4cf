"""Threshold rules over HTTP."""

import pytest

from controlplane.core.http.tests.callers import as_role, person, with_token
from slo.models import Alert, ThresholdRule

from .fake_metric import NOW

pytestmark = pytest.mark.django_db

ONE = "/thresholds/core-timeouts/"
RULE = {
    "title": "Calls of core that time out",
    "metric": "timeout_rate",
    "statistic": "rate",
    "window": "10m",
    "comparison": ">=",
    "value": 0.02,
    "min_events": 50,
    "severity": "critical",
    "runbook_url": "https://runbooks.example/timeouts",
}


def test_a_rule_is_made_shown_changed_and_removed(admin):
    created = admin.send("put", ONE, {**RULE, "reason": "core pages too late"})
    fetched = admin.get(ONE)
    changed = admin.send("put", ONE, {**RULE, "enabled": False})
    removed = admin.send("delete", ONE, {})

    assert (created.status_code, changed.status_code, removed.status_code) == (201, 200, 200)
    body = created.json()
    assert {field: body[field] for field in RULE} == RULE
    assert (body["name"], body["enabled"], body["built_in"]) == ("core-timeouts", True, False)
    assert body["sentence"] == "Timeout rate at least 2 % in 10 min, if at least 50 events"
    assert fetched.json() == body
    assert (changed.json()["enabled"], changed.json()["version"]) == (False, 2)
    assert admin.get(ONE).status_code == 404


def test_a_new_one_of_a_name_that_is_taken_is_refused(admin):
    first = admin.post("/thresholds/", {**RULE, "name": "core-timeouts"})
    second = admin.post("/thresholds/", {**RULE, "name": "core-timeouts"})

    assert (first.status_code, second.status_code) == (201, 409)


def test_the_list_has_the_seven_of_the_beginning_and_what_is_open_of_each(admin):
    Alert.objects.create(
        kind="threshold",
        rule="breaker_open",
        subject="core->oracle",
        severity="warning",
        summary="It is open",
        opened_at=NOW,
        firing_at=NOW,
    )

    rows = {one["name"]: one for one in admin.get("/thresholds/").json()["results"]}

    assert len(rows) == 7
    assert (rows["breaker_open"]["open_alerts"], rows["timeout_rate"]["open_alerts"]) == (1, 0)
    assert rows["e2e_latency"]["value"] == 5000


def test_each_wrong_field_is_named(admin):
    response = admin.send("put", ONE, {**RULE, "metric": "nothing", "severity": "loud"})

    assert response.status_code == 400
    assert set(response.json()["errors"]) == {"metric", "severity"}


@pytest.mark.parametrize(("field", "value"), [("value", "0.02"), ("enabled", "true")])
def test_a_number_in_quotes_is_none(admin, field, value):
    response = admin.send("put", ONE, {**RULE, field: value})

    assert response.status_code == 400
    assert set(response.json()["errors"]) == {field}


def test_a_dry_run_changes_nothing(admin):
    response = admin.send("put", ONE, {**RULE, "dry_run": True})

    assert response.json()["dry_run"] is True
    assert not ThresholdRule.objects.filter(name="core-timeouts").exists()


def test_only_admins_and_their_tokens_may_change_one():
    reader = with_token("slo:read", owner=person("admin", "root"))
    writer = with_token("slo:write", owner=person("admin", "root2"))
    operator = with_token("slo:write", owner=person("operator", "olga"))

    assert reader.get("/thresholds/").status_code == 200
    assert reader.send("put", ONE, RULE).status_code == 403
    assert operator.send("put", ONE, RULE).status_code == 403
    assert writer.get("/thresholds/").status_code == 403
    assert writer.send("put", ONE, RULE).status_code == 201
    assert as_role("operator").send("delete", ONE, {}).status_code == 403
