"""Alerts over HTTP: list, detail, acknowledgement."""

from datetime import timedelta

import pytest

from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import as_role, person, with_token
from controlplane.core.roles import Role
from slo.models import Alert, ThresholdRule

from .factories import slo

pytestmark = pytest.mark.django_db


def alert(subject="core-availability", **fields):
    at = db_now() - timedelta(minutes=5)
    columns = {
        "kind": "burn",
        "rule": "1h/5m>14 page",
        "severity": "critical",
        "label": "page",
        "service": "core",
        "summary": f"{subject} burned its error budget at 20× the allowed rate over 1h",
        "evidence": {"burn_rate": 14},
        "opened_at": at,
        "firing_at": at,
        **fields,
    }
    return Alert.objects.create(subject=subject, **columns)


def subjects(caller, query=""):
    return [one["subject"] for one in caller.get(f"/alerts/{query}").json()["results"]]


def test_alert_is_told_with_its_evidence_and_its_slo(operator):
    one = alert(slo=slo())

    (listed,) = operator.get("/alerts/").json()["results"]

    assert operator.get(f"/alerts/{one.pk}/").json() == listed
    assert (listed["state"], listed["slo"], listed["threshold"]) == (
        *("open", "core-availability"),
        None,
    )
    assert listed["evidence"] == {"burn_rate": 14}
    assert listed["resolved_at"] is None


def test_newest_are_first_and_may_be_narrowed(operator):
    now = db_now()
    alert("a", acknowledged_at=now, slo=slo("a"))
    alert("b", resolved_at=now, service="oracle")
    rule = ThresholdRule.objects.first() or pytest.fail("the built-in rules are missing")
    alert("c", kind="threshold", threshold=rule, rule=rule.name, severity="warning")

    assert subjects(operator) == ["c", "b", "a"]
    assert subjects(operator, "?state=open") == ["c"]
    assert subjects(operator, "?state=acknowledged") == ["a"]
    assert subjects(operator, "?state=resolved") == ["b"]
    assert subjects(operator, "?severity=warning") == ["c"]
    assert subjects(operator, "?kind=threshold") == ["c"]
    assert subjects(operator, "?service=oracle") == ["b"]
    assert subjects(operator, "?slo=a") == ["a"]
    assert subjects(operator, "?q=14 PAGE") == ["b", "a"]
    assert operator.get("/alerts/?state=loud").status_code == 400


def test_somebody_who_knows_says_so(operator):
    one = alert()

    response = operator.post(f"/alerts/{one.pk}/ack", {"comment": "Looking at the database"})

    assert response.status_code == 200
    body = response.json()
    assert (body["state"], body["acknowledged_by"]) == ("acknowledged", "user:a-operator")
    assert body["acknowledged_because"] == "Looking at the database"
    row = AuditEntry.objects.order_by("-id").first()
    assert (row.action, row.target) == ("alert.acknowledged", f"alert:{one.pk}")


def test_what_has_resolved_can_t_be_acknowledged(operator):
    one = alert(resolved_at=db_now())

    assert operator.post(f"/alerts/{one.pk}/ack", {}).status_code == 409


def test_viewers_don_t_acknowledge():
    one = alert()

    assert as_role("viewer").post(f"/alerts/{one.pk}/ack", {}).status_code == 403


@pytest.mark.parametrize("number", ["0", "x", "9" * 30, "-1", "%C2%B2"])
def test_alert_that_is_not_there_is_not_found(operator, number):
    for path in ("/", "/postmortem"):
        assert operator.get(f"/alerts/{number}{path}").status_code == 404
    assert operator.post(f"/alerts/{number}/ack", {}).status_code == 404


def test_draft_of_a_postmortem_is_markdown(operator):
    one = alert(slo=slo(), resolved_at=db_now())

    body = operator.get(f"/alerts/{one.pk}/postmortem").json()

    assert body["alert"] == one.pk
    assert body["markdown"].startswith("# Postmortem")


def test_draft_quotes_the_audit_trail_so_a_token_has_to_be_allowed_to_read_that():
    path = f"/alerts/{alert().pk}/postmortem"

    refused = with_token("slo:read").get(path)
    beside = with_token("audit:read", owner=person("admin", "auditor")).get(path)
    both = with_token("slo:read", "audit:read", owner=person("admin", "both")).get(path)

    assert (refused.status_code, refused.json()["scope"]) == (403, "audit:read")
    assert (beside.status_code, both.status_code) == (403, 200)


@pytest.mark.parametrize("role", list(Role))
def test_people_of_every_role_may_read_the_draft(role):
    assert as_role(role).get(f"/alerts/{alert().pk}/postmortem").status_code == 200
