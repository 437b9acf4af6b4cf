"""The pages of alerts: rules, figures, acknowledgement and actions."""

from dataclasses import replace
from datetime import timedelta

import pytest

from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.roles import READ_SCOPES, SCOPES_OF, Role
from controlplane.core.trip_requests.models import TripRequest
from controlplane.notify.targets.tests.people import fill
from slo.alerts import lifecycle
from slo.evaluation import tick
from slo.models import Alert, ThresholdRule
from switches.tests.browsers import DIALOG, PART, browser_as, page, text

from . import factories
from .factories import OPERATOR
from .month_of_events import Incident, alert, month

pytestmark = pytest.mark.django_db
WHAT_I_DO = "Rolling back core 2.14, bridge call open"
TRIP = {"on": "page", "do": "trip", "switch": "experiment:new-planner", "expires_in": "2h"}
HOLD = {"on": "page", "do": "hold_ramps"}


def create_alert(**fields):
    """Return an SLO that has burned for twenty minutes, evaluated just now, and its page."""
    now = db_now()
    slo = factories.slo(**{"owner": "team-core", "actions": [TRIP, HOLD], **fields})
    month(slo, now, [Incident(20, 21, 0.2)], days=4)
    tick.evaluate_due_minutes(now)
    return Alert.objects.get(label="page")


def get_page(path, role="viewer", **headers):
    return page(browser_as(role).get(path, headers=headers))


def test_open_ones_come_first_worst_first_and_known_ones_last():
    now = db_now()
    slo = factories.slo()
    ticket = {"rule": "6h/30m>6 ticket", "label": "ticket", "severity": "warning"}
    alert(slo, now - timedelta(hours=2), None, subject="known", acknowledged_at=now)
    alert(slo, now - timedelta(hours=1), None, subject="slow", **ticket)
    alert(slo, now - timedelta(minutes=5), None, subject="fast")
    alert(slo, now - timedelta(hours=9), 20, subject="past")

    html = get_page("/alerts/")

    places = [html.index(f'<bdi dir="auto">{name}</bdi>') for name in ("fast", "slow", "known")]
    assert places == sorted(places)
    assert "past" not in html
    assert "3 open alerts 2 critical. 1 warning." in text(html)
    assert "2 not acknowledged." in text(html)


def test_list_is_narrowed_to_what_is_asked_for():
    now = db_now()
    slo = factories.slo()
    ticket = {"rule": "6h/30m>6 ticket", "label": "ticket", "severity": "warning"}
    alert(slo, now - timedelta(hours=9), 20)
    alert(slo, now - timedelta(hours=1), None, subject="oracle-p95", summary="slow", **ticket)

    assert "for 20 min" in text(get_page("/alerts/?state=resolved"))
    assert "oracle-p95" in get_page("/alerts/?q=oracle", "operator")
    assert "No matching alerts" in get_page("/alerts/?severity=critical", "approver")
    everything = get_page("/alerts/?state=all&slo=core-availability", "admin")
    assert "for 20 min" in text(everything)
    assert 'id="alert-' in everything
    assert '<bdi dir="auto">oracle-p95' not in everything


@pytest.mark.parametrize(
    ("metric", "words"), [("switch_engaged", "Engaged now"), ("timeout_rate", "Firing now")]
)
def test_reading_of_a_switch_says_that_it_is_engaged(metric, words):
    rule = ThresholdRule.objects.filter(metric=metric).first()
    threshold = {"kind": "threshold", "rule": rule.name, "threshold": rule, "label": ""}
    alert(factories.slo(), db_now(), None, **threshold)

    assert words in text(get_page("/alerts/"))


def test_list_tells_why_alerts_resolved():
    one = alert(factories.slo(), db_now() - timedelta(hours=1), 20)
    why = "All instances of the calling service have stopped."
    Alert.objects.filter(pk=one.pk).update(resolved_because=why)

    assert why in text(get_page("/alerts/?state=resolved"))


def test_quiet_list_says_so():
    assert "No open alerts" in get_page("/alerts/")


def test_page_shows_what_was_counted_in_both_windows_and_what_is_left():
    one = create_alert()

    content = text(get_page(f"/alerts/{one.pk}/"))

    assert f"{one.summary}." in content
    assert "burn rate above 14 over 1 h and 5 min" in content
    assert "1h when it opened" in content
    assert "5m when it opened" in content
    assert "Budget left" in content
    assert "owner team-core" in content
    assert "Acknowledged by Nobody yet" in content
    assert "Firing now" in content
    assert "1h now" in content


def test_page_tells_what_was_done_by_itself_and_how_that_was_decided():
    one = create_alert()
    TripRequest.objects.update(decided_at=db_now(), tripped=False, why="Its flap lock-out lasts.")

    content = text(get_page(f"/alerts/{one.pk}/"))

    assert "Ramps of core Held" in content
    assert "experiment:new-planner Released Not engaged by this alert." in content
    assert "Its flap lock-out lasts." in content
    assert "experiment:new-planner not engaged" in content


def test_acknowledging_falls_silent_and_is_shown_with_what_one_does():
    one = create_alert()
    browser = browser_as("operator")
    assert "Acknowledge" in page(browser.get(f"/alerts/{one.pk}/"))

    response = browser.post(f"/alerts/{one.pk}/acknowledge/", {"reason": WHAT_I_DO}, headers=DIALOG)

    assert response.status_code == 204
    content = text(page(browser.get(f"/alerts/{one.pk}/", headers=PART)))
    assert WHAT_I_DO in content
    assert "a-operator" in content
    assert Escalation.objects.get(subject=f"alert:{one.pk}").acknowledged_at is not None
    assert AuditEntry.objects.get(action="alert.acknowledged").reason == WHAT_I_DO


def test_nobody_can_be_told_is_said_without_a_countdown():
    alert = create_alert()

    html = get_page(f"/alerts/{alert.pk}/", "admin")

    called = html.split('id="called-title"', 1)[1].split("</section>", 1)[0]
    assert "No one is notified." in called
    assert 'href="/targets/">Set up notifications' in called
    assert "data-until" not in called
    assert "The routes are told" not in html


def test_whoever_is_called_next_is_named_with_the_step(settings):
    settings.EMAIL = replace(settings.EMAIL, host="127.0.0.1")
    fill("team-lead", "lead@example.org")
    alert = create_alert()

    content = text(get_page(f"/alerts/{alert.pk}/", "admin"))

    assert "notifies team-lead within seconds" in content
    assert "No step has been notified yet." in content


def test_what_has_resolved_can_not_be_acknowledged():
    one = alert(factories.slo(), db_now() - timedelta(hours=1), 5)
    browser = browser_as("operator")
    assert "nothing to acknowledge" in text(page(browser.get(f"/alerts/{one.pk}/acknowledge/")))

    response = browser.post(f"/alerts/{one.pk}/acknowledge/", {})

    assert response.status_code == 409


def test_viewer_sees_and_may_not_acknowledge():
    one = create_alert()
    browser = browser_as("viewer")

    assert "do-acknowledge" not in page(browser.get(f"/alerts/{one.pk}/"))
    assert browser.post(f"/alerts/{one.pk}/acknowledge/", {}).status_code == 403
    one.refresh_from_db()
    assert one.acknowledged_at is None


def test_timeline_is_in_order_and_ends_with_the_end():
    one = create_alert()
    lifecycle.acknowledge_alert(alert_id=one.pk, actor=OPERATOR, now=db_now(), comment=WHAT_I_DO)
    Escalation.objects.filter(subject=f"alert:{one.pk}").update(
        facts={"told": [{"at": one.opened_at.isoformat(), "who": ["on-call (kim)"]}]}
    )
    ended = one.opened_at + timedelta(hours=1)
    Alert.objects.filter(pk=one.pk).update(resolved_at=ended, resolved_because="Its rule rests.")

    content = text(get_page(f"/alerts/{one.pk}/"))

    story = content[content.index("Timeline") :]
    places = [
        story.index(words)
        for words in (
            "Opened",
            "Escalated to on-call (kim)",
            "Requested to engage",
            "Acknowledged",
            "Resolved",
        )
    ]
    assert places == sorted(places)


def test_threshold_alert_shows_its_figure_and_its_limit():
    now = db_now()
    one = Alert.objects.create(
        kind="threshold", rule="timeout_rate", subject="core->oracle", service="core",
        severity="warning", label="", summary="Calls of core → oracle time out",
        path="/breakers/core/oracle/", opened_at=now, firing_at=now,
        evidence={"value": 0.04, "limit": 0.01, "comparison": ">", "samples": 250, "calls": 250},
        latest={"value": 0.05, "limit": 0.01, "samples": 300},
    )  # fmt: skip

    content = text(get_page(f"/alerts/{one.pk}/"))

    assert "timeout rate" in content
    assert "Now 0.05" in content
    assert "limit 0.01" in content
    assert "calls 250" in content
    assert "core → oracle" in content
    assert "core->oracle" not in content
    assert "Automatic actions" not in content


def test_alert_of_a_switch_says_how_it_stands_now_in_words_for_people():
    now = db_now()
    begun = {
        "value": 1, "limit": 0, "comparison": ">", "samples": 1, "stands": "engaged",
        "engaged_by": "system:slo:oracle-answers", "engaged_at": "2026-11-24T08:25:24.137867Z",
        "allow_percent": 0.0,
    }  # fmt: skip
    one = Alert.objects.create(
        kind="threshold", rule="switch_engaged", subject="experiment:rag-v2", severity="critical",
        summary="The switch experiment:rag-v2 was engaged by slo:oracle-answers", opened_at=now,
        firing_at=now, path="/switches/experiment/rag-v2/", evidence=begun,
        latest={**begun, "stands": "ramping, 5 % allowed", "allow_percent": 5.0},
    )  # fmt: skip

    html = get_page(f"/alerts/{one.pk}/")

    content = text(html)
    assert "Now ramping, 5 % allowed" in content
    assert "24 Nov 2026 08:25:24 UTC" in content
    assert "let through 0 %" in content
    for machine in ("08:25:24.137867", "limit 0", "system:slo:oracle-answers", "stands"):
        assert machine not in content


def test_postmortem_is_shown_and_can_be_taken_along():
    one = create_alert()

    assert "Postmortem draft" in get_page(f"/alerts/{one.pk}/postmortem/")
    response = browser_as("operator").get(f"/alerts/{one.pk}/postmortem/?download")

    assert response["Content-Type"] == "text/markdown; charset=utf-8"
    assert f"postmortem-{one.pk}.md" in response["Content-Disposition"]
    assert response.content.decode().startswith("# Postmortem")


def test_postmortem_is_for_who_may_read_the_audit_trail(monkeypatch):
    one = alert(factories.slo(), db_now() - timedelta(hours=1), 5)
    monkeypatch.setitem(SCOPES_OF, Role.VIEWER, READ_SCOPES - {"audit:read"})

    browser = browser_as("viewer")
    responses = [browser.get(f"/alerts/{one.pk}/postmortem/{query}") for query in ("", "?download")]

    assert [response.status_code for response in responses] == [403, 403]


@pytest.mark.parametrize("path", ["", "acknowledge/", "postmortem/"])
def test_unknown_one_is_not_found(path):
    assert browser_as("operator").get(f"/alerts/{2**70}/{path}").status_code == 404
    assert browser_as("admin").get(f"/alerts/4711/{path}").status_code == 404
