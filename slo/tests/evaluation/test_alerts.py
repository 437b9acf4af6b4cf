"""Alerts: notifications, escalations, and acknowledgement."""

import pytest

from controlplane.core.audit.models import AuditEntry
from controlplane.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from controlplane.core.outbox import renderer
from controlplane.core.outbox.escalation import Escalation
from slo.alerts import lifecycle
from slo.arithmetic.hysteresis import FiringRule
from slo.arithmetic.minutes import end_of
from slo.models import Alert
from slo.tests.factories import OPERATOR, VIEWER

from .scenarios import (
    BAD,
    GOOD,
    MINUTE,
    NOON,
    SECOND,
    TICKET,
    alert,
    create_burning_slo,
    due_at,
    evaluate_minutes,
    list_messages,
    update_thresholds,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("configured_targets")]

AT = end_of(NOON)


def firing_rule(subject="core->oracle", **more):
    fields = {
        "rule": "timeout_rate", "service": "core", "severity": "warning", "label": "",
        "summary": f"Calls of {subject} time out", "path": "/breakers/core/oracle/", **more,
    }  # fmt: skip
    return FiringRule(subject=subject, **fields)


def update_alerts(*firing_now, now=AT, **more):
    return update_thresholds(now, firing_now, **more)


def test_a_page_is_told_as_critical_with_what_was_counted_and_what_is_left():
    create_burning_slo(
        after=[BAD] * 5, owner="search team", runbook_url="https://runbooks.example/core"
    )

    evaluate_minutes(NOON + 2)

    (message,) = list_messages("slo.alert")
    assert (message.severity, message.subject) == ("critical", f"alert:{alert().pk}")
    notice = renderer.render(message.event, message.payload)
    assert notice.title == (
        "core-availability burned its error budget at 16.9× the allowed rate over 1h"
        " and 200× over 5m (limit 14×)"
    )
    assert ("Owner", "search team") in notice.lines
    assert ("Runbook", "https://runbooks.example/core") in notice.lines
    assert notice.path == f"/alerts/{alert().pk}/"
    assert alert().evidence["windows"]["5m"] == {
        "good": 39994, "bad": 10006, "total": 50000, "burn_rate": 200.12, "coverage": 1.0,
    }  # fmt: skip


def test_a_ticket_is_a_warning():
    create_burning_slo(after=[BAD] * 10, rules=[TICKET])

    evaluate_minutes(NOON + 6)

    assert (alert().severity, alert().label) == ("warning", "ticket")
    assert list_messages("slo.alert")[0].severity == "warning"


def test_whoever_is_on_call_is_called_until_it_is_over():
    create_burning_slo(after=[*[BAD] * 2, *[GOOD] * 10])
    evaluate_minutes(NOON, NOON + 2)
    called = Escalation.objects.get()
    assert (called.subject, called.severity) == (f"alert:{alert().pk}", "critical")
    assert called.closed_at is None

    evaluate_minutes(NOON + 3, NOON + 10)

    assert Escalation.objects.get().closed_at is not None
    (message,) = list_messages("slo.alert_over")
    assert message.subject == f"alert:{alert().pk}"
    notice = renderer.render(message.event, message.payload)
    assert notice.title.startswith("Resolved: core-availability burned")
    assert alert().resolution_notified_at == due_at(NOON + 8)


def test_an_alert_that_is_only_information_calls_nobody():
    update_alerts(firing_rule(severity="info"))

    assert alert().notified_at == AT
    assert not Escalation.objects.exists()


def test_what_a_person_brought_about_begins_acknowledged():
    update_alerts(firing_rule(severity="critical", acknowledged_by="user:kim"))

    assert alert().state == "acknowledged"
    assert not Escalation.objects.exists()


def test_many_at_once_are_told_together_and_what_follows_a_minute_later():
    update_alerts(*(firing_rule(f"core->{n}") for n in range(5)))
    many = list_messages("slo.alerts")
    assert [one.payload["count"] for one in many] == [5]
    assert not list_messages("slo.alert")

    fires = [firing_rule(f"core->{n}") for n in range(7)]
    update_alerts(*fires, now=AT + 10 * SECOND)
    assert len(list_messages("slo.alerts")) == 1
    update_alerts(*fires, now=AT + MINUTE + SECOND)

    assert Escalation.objects.count() == 7
    assert len(list_messages("slo.alerts")) + len(list_messages("slo.alert")) == 2 + 1
    assert not Alert.objects.filter(notified_at=None).exists()


def test_many_that_are_over_at_once_are_told_together():
    update_alerts(*(firing_rule(f"core->{n}") for n in range(5)))

    update_alerts(now=AT + 2 * MINUTE)

    assert [one.payload["count"] for one in list_messages("slo.alerts_over")] == [5]
    assert not list_messages("slo.alert_over")


def test_messages_go_to_the_thread_that_a_rule_names_with_its_facts():
    update_alerts(firing_rule(thread="dependency:core->oracle", facts={"owner": "core team"}))

    (message,) = list_messages("slo.alert")
    assert message.subject == "dependency:core->oracle"
    assert message.payload["owner"] == "core team"


def test_an_alert_keeps_what_was_seen_last():
    update_alerts(firing_rule(evidence={"value": 1}))
    update_alerts(firing_rule(evidence={"value": 2}), now=AT + 10 * SECOND)

    assert (alert().evidence, alert().latest) == ({"value": 1}, {"value": 2})
    assert alert().firing_at == AT + 10 * SECOND


def test_alerts_of_one_kind_are_not_touched_by_a_look_at_the_other():
    create_burning_slo(after=[BAD] * 5)
    evaluate_minutes(NOON + 2)

    update_alerts(now=AT + 60 * MINUTE)

    assert alert().resolved_at is None


def test_acknowledging_silences_the_escalation_and_is_audited():
    update_alerts(firing_rule())

    lifecycle.acknowledge_alert(
        alert_id=alert().pk, actor=OPERATOR, now=AT + MINUTE, comment=" on it "
    )

    one = alert()
    assert (one.state, one.acknowledged_by) == ("acknowledged", "user:olga")
    assert one.acknowledged_because == "on it"
    called = Escalation.objects.get()
    assert called.acknowledged_by == "user:olga"
    row = AuditEntry.objects.get(action="alert.acknowledged")
    assert (row.target, row.reason) == (f"alert:{one.pk}", "on it")


def test_what_has_resolved_or_never_was_can_not_be_acknowledged_nor_by_anybody():
    update_alerts(firing_rule())
    pk = alert().pk
    with pytest.raises(Forbidden):
        lifecycle.acknowledge_alert(alert_id=pk, actor=VIEWER, now=AT)
    with pytest.raises(NotFound):
        lifecycle.acknowledge_alert(alert_id=pk + 1, actor=OPERATOR, now=AT)
    update_alerts(now=AT + 2 * MINUTE)

    with pytest.raises(Conflict):
        lifecycle.acknowledge_alert(alert_id=pk, actor=OPERATOR, now=AT + 3 * MINUTE)


def test_a_comment_that_can_not_be_read_is_refused_and_nothing_is_acknowledged():
    update_alerts(firing_rule())

    with pytest.raises(InvalidInput, match="comment"):
        lifecycle.acknowledge_alert(
            alert_id=alert().pk, actor=OPERATOR, now=AT, comment="fine \u202egpj"
        )

    assert alert().acknowledged_at is None


def test_an_alert_has_a_runbook_of_ours_if_its_slo_names_none():
    create_burning_slo(after=[BAD] * 5)

    evaluate_minutes(NOON + 2)

    path = list_messages("slo.alert")[0].payload["runbook"]
    assert path is None or path.startswith("/runbooks/")
