"""Acknowledging the alerts of a group in one step: page, API, permissions and races."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connections

from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict
from controlplane.core.http.tests.callers import as_role
from controlplane.core.outbox.escalation import Escalation
from slo import attention
from slo.alerts import actions, lifecycle
from slo.models import Alert
from switches.tests.browsers import DIALOG, browser_as, page, text

from .factories import OPERATOR

pytestmark = pytest.mark.django_db
WHY = "Rolling back core 2.14, bridge call open"


def create_group(*severities, **fields):
    at = db_now() - timedelta(minutes=5)
    alerts = [
        Alert.objects.create(
            kind="burn", rule=f"rule {place}", severity=severity, label="page", service="core",
            subject=f"core-slo-{place}", summary=f"core-slo-{place} burns", opened_at=at,
            firing_at=at, **fields,
        )
        for place, severity in enumerate(severities)
    ]  # fmt: skip
    Alert.objects.update(group=alerts[0].pk)
    actions.start_escalations(alerts, at)
    return alerts


def acknowledged():
    return list(
        Alert.objects.filter(acknowledged_at__isnull=False)
        .order_by("pk")
        .values_list("pk", flat=True)
    )


def test_group_is_one_line_with_its_members_inside_and_one_button():
    first, *_ = create_group("warning", "critical", "warning")

    html = page(browser_as("operator").get("/alerts/"))

    group = html.split(f'id="alert-group-{first.pk}"', 1)[1]
    assert "3 alerts about core" in group
    assert "core-slo-1 burns" in group
    assert "Acknowledge all 3" in text(group)
    assert html.count('class="list-row alert-row') == 3
    assert f'href="/alerts/groups/{first.pk}/acknowledge/"' in group
    assert "/acknowledge/" not in page(browser_as("viewer").get("/alerts/")).split("<main")[1]


def test_page_acknowledges_the_shown_alerts_each_with_an_audit_row():
    shown = create_group("critical", "warning")
    browser, path = browser_as("operator"), f"/alerts/groups/{shown[0].pk}/acknowledge/"
    assert "Acknowledge 2 alerts" in text(page(browser.get(path, headers=DIALOG)))
    late = Alert.objects.create(
        kind="burn", rule="late", severity="critical", label="page", service="core",
        subject="late", summary="late", opened_at=db_now(), firing_at=db_now(), group=shown[0].pk,
    )  # fmt: skip

    response = browser.post(
        path, {"reason": WHY, "alert": [one.pk for one in shown]}, headers=DIALOG
    )

    assert response.status_code == 204
    assert acknowledged() == [one.pk for one in shown]
    late.refresh_from_db()
    assert late.state == "open"
    rows = AuditEntry.objects.filter(action="alert.acknowledged").order_by("pk")
    assert [(row.target, row.reason) for row in rows] == [(f"alert:{one.pk}", WHY) for one in shown]
    assert not Escalation.objects.filter(acknowledged_at=None).exists()


def test_group_is_one_attention_item_with_the_worst_severity():
    first, *_ = create_group("warning", "critical")

    (item,) = attention.list_alerts_and_gaps(db_now())

    assert (item.severity, item.title) == ("critical", "2 alerts about core")
    (action,) = item.actions
    assert action.path == f"/alerts/groups/{first.pk}/acknowledge/"


def test_link_of_the_attention_item_shows_a_group_that_is_not_on_the_first_page():
    first, *_ = create_group("warning", "warning")
    at = db_now() - timedelta(minutes=9)
    Alert.objects.bulk_create(
        Alert(
            kind="burn", rule="other", severity="critical", label="page", service="oracle",
            subject=f"oracle-slo-{place}", summary="burns", opened_at=at, firing_at=at,
        )
        for place in range(60)
    )  # fmt: skip
    browser, group = browser_as("operator"), f'id="group-{first.pk}"'
    item = attention.list_alerts_and_gaps(db_now())[-1]

    assert item.title == "2 alerts about core"
    assert group not in page(browser.get("/alerts/"))
    shown = page(browser.get(item.path.partition("#")[0]))
    assert group in shown
    assert "Alerts of one cause" in text(shown)
    assert "oracle-slo" not in shown


@pytest.mark.parametrize("group", ["x", "-1", "9" * 18, "9" * 40, "²"])
def test_unknown_group_is_an_empty_or_whole_list(group):
    assert browser_as("viewer").get("/alerts/", {"group": group}).status_code == 200


def test_api_acknowledges_ids_or_a_group():
    first, second, third = create_group("critical", "warning", "warning")
    operator = as_role("operator")

    by_ids = operator.post("/alerts/ack", {"alerts": [first.pk, second.pk], "comment": WHY})
    by_group = operator.post("/alerts/ack", {"group": first.pk})

    assert [one["id"] for one in by_ids.json()["results"]] == [first.pk, second.pk]
    assert [one["id"] for one in by_group.json()["results"]] == [third.pk]
    assert by_group.json()["results"][0]["group"] == first.pk
    assert operator.post("/alerts/ack", {"group": first.pk}).status_code == 409


@pytest.mark.parametrize(
    ("role", "body", "status"),
    [
        ("viewer", {"group": 1}, 403),
        ("operator", {}, 400),
        ("operator", {"alerts": []}, 400),
        ("operator", {"alerts": ["1"]}, 400),
        ("operator", {"alerts": [1], "group": 1}, 400),
        ("operator", {"alerts": [2**62]}, 404),
        ("operator", {"group": 2**62}, 404),
    ],
)
def test_requests_that_name_nothing_or_too_much_are_refused(role, body, status):
    create_group("critical")

    assert as_role(role).post("/alerts/ack", body).status_code == status
    assert acknowledged() == []


def test_viewer_acknowledges_no_group():
    first, *_ = create_group("critical", "critical")

    response = browser_as("viewer").post(
        f"/alerts/groups/{first.pk}/acknowledge/", {"alert": [first.pk]}
    )

    assert response.status_code == 403
    assert acknowledged() == []


@pytest.mark.django_db(transaction=True)
def test_two_people_at_once_acknowledge_each_alert_once():
    ids = [one.pk for one in create_group(*["critical"] * 4)]

    def acknowledge(_):
        try:
            done = lifecycle.acknowledge_alerts(alert_ids=ids, actor=OPERATOR, now=db_now())
            return len(done)
        except Conflict:
            return 0
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(acknowledge, range(4)))

    assert sorted(counts) == [0, 0, 0, 4]
    assert AuditEntry.objects.filter(action="alert.acknowledged").count() == 4
