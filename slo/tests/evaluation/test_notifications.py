"""Notifications: critical alerts at once, summaries of many, and live pages of what changed."""

from dataclasses import replace

import pytest

from slo.alerts import lifecycle, notifications
from slo.arithmetic.hysteresis import FiringRule
from slo.arithmetic.minutes import end_of
from slo.models import Alert
from slo.tests.factories import OPERATOR

from .scenarios import (
    BAD,
    MINUTE,
    NOON,
    SECOND,
    create_burning_slo,
    evaluate_minutes,
    list_messages,
    update_thresholds,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("configured_targets")]

AT = end_of(NOON)


@pytest.fixture
def noted(monkeypatch):
    messages = []
    monkeypatch.setattr(lifecycle, "notify_changed", lambda topic, *ids: messages.extend(ids))
    return messages


def firing_rule(subject, **more):
    fields = {
        "rule": "timeout_rate", "service": "core", "severity": "critical", "label": "",
        "summary": f"Calls of {subject} time out", "path": "/", **more,
    }  # fmt: skip
    return FiringRule(subject=subject, **fields)


def firing_rules(count, **more):
    return [firing_rule(f"s{number}", **more) for number in range(count)]


def update_alerts(firing_now, now=AT):
    return update_thresholds(now, firing_now)


def announced_subjects():
    return [one.payload["about"] for one in list_messages("slo.alert")]


def test_critical_ones_are_told_while_somebody_engages_one_switch_after_another():
    known = [firing_rule("switch0", acknowledged_by="user:ann")]
    update_alerts(known)

    known.append(firing_rule("switch1", acknowledged_by="user:ann"))
    update_alerts([*known, *firing_rules(4)], now=AT + 40 * SECOND)

    assert announced_subjects() == ["s0", "s1", "s2", "s3"]


def test_messages_tell_burn_rate_rules_in_words():
    key, words = "1h/5m>14 page", "burn rate above 14 over 1 h and 5 min"

    update_alerts(firing_rules(9, rule=key))

    single = list_messages("slo.alert")[0].payload
    assert (single["rule"], single["rule_words"]) == (key, words)
    assert f"({words})" in list_messages("slo.alerts")[0].payload["list"]


def test_what_is_over_is_told_together_while_somebody_engages_a_switch():
    update_alerts(firing_rules(5, severity="warning"))
    update_alerts([firing_rule("switch0", acknowledged_by="user:ann")], now=AT + 2 * MINUTE)

    assert len(list_messages("slo.alerts_over")) == 1


def test_a_critical_one_is_told_alone_just_after_many_others():
    infos = firing_rules(20, severity="info")
    update_alerts(infos)
    assert len(list_messages("slo.alerts")) == 1

    update_alerts([*infos, firing_rule("database")], now=AT + 10 * SECOND)

    assert announced_subjects() == ["database"]


def test_of_many_critical_ones_the_first_are_told_alone_and_the_rest_together():
    update_alerts(firing_rules(9))

    assert announced_subjects() == ["s0", "s1", "s2", "s3", "s4"]
    assert [one.payload["count"] for one in list_messages("slo.alerts")] == [4]


def test_what_was_told_in_the_future_does_not_keep_back_what_opens_now():
    ahead = AT + 3 * 24 * 60 * MINUTE
    update_alerts(firing_rules(9, rule="before"), now=ahead)
    update_alerts([], now=ahead + 3 * MINUTE)
    Alert.objects.update(resolved_at=None, resolution_notified_at=None, rule="old")

    update_alerts(firing_rules(9))

    assert not Alert.objects.filter(rule="timeout_rate", notified_at=None).exists()


def test_open_alerts_that_were_told_of_are_not_read_again(monkeypatch):
    update_alerts(firing_rules(2))
    counts = []
    monkeypatch.setattr(notifications, "_notify_resolved", lambda rows, now: counts.extend(rows))
    before = Alert.from_db.__func__
    read = []

    def from_db(cls, *args):
        read.append(1)
        return before(cls, *args)

    monkeypatch.setattr(Alert, "from_db", classmethod(from_db))
    notifications.send_notifications(AT + 10 * SECOND)

    assert (read, counts) == ([], [])


def test_runbooks_of_ours_are_told_by_their_whole_address(settings, monkeypatch):
    settings.PUBLIC_URL = "https://console.example"
    update_alerts([firing_rule("core->oracle")])
    monkeypatch.setattr("controlplane.core.runbooks.find_slug", lambda **_: "core-api-down")

    facts = notifications.alert_facts(Alert.objects.get())

    assert facts["runbook"] == "https://console.example/runbooks/core-api-down/"
    settings.PUBLIC_URL = ""
    assert notifications.alert_facts(Alert.objects.get())["runbook"] == "/runbooks/core-api-down/"


def test_a_runbook_elsewhere_is_told_as_it_was_written():
    fires = firing_rule("x", facts={"runbook": "https://wiki.example/x"})
    update_alerts([replace(fires, severity="info")])

    assert list_messages("slo.alert")[0].payload["runbook"] == "https://wiki.example/x"


def test_pages_are_told_of_slos_only_and_of_those_that_moved(noted):
    update_alerts([firing_rule("core->oracle")])
    lifecycle.acknowledge_alert(alert_id=Alert.objects.get().pk, actor=OPERATOR, now=AT)
    assert noted == []

    create_burning_slo("burns", after=[BAD] * 10)
    evaluate_minutes(NOON + 2)
    assert noted == ["burns"]
    create_burning_slo("later", after=[*[BAD] * 3])
    evaluate_minutes(NOON + 3)

    assert noted == ["burns", "later"]
