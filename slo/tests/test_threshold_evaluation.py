"""Evaluation of threshold rules: what opens an alert, what resolves one, and what does neither."""

import logging
import threading

import pytest
from django.db import connection, transaction

from breakers.tests.fleet import reachable
from controlplane.core import ticks
from controlplane.core.models import Tick
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.outbox.models import OutboxMessage
from slo import retention_rules
from slo.alerts import lifecycle
from slo.models import Alert, ThresholdRule
from switches.tests.browsers import engaged

from .fake_metric import MINUTE, NOW, SECOND, list_open_alerts, register_metric, rule, run_tick

pytestmark = pytest.mark.django_db


@pytest.fixture
def queues():
    with register_metric() as queues:
        yield queues


def test_a_figure_beyond_its_limit_is_an_alert_that_says_all_of_it(queues):
    about = rule(severity="critical", runbook_url="https://runbooks.example/queues")
    queues.readings = {
        "mail": {"value": 11, "service": "post", "thread": "queue:mail", "evidence": {"seen": 3}}
    }

    assert run_tick(NOW) == 1

    alert = Alert.objects.get()
    assert (alert.kind, alert.rule, alert.subject) == ("threshold", "deep", "mail")
    assert (alert.severity, alert.service, alert.threshold) == ("critical", "post", about)
    assert (alert.summary, alert.path) == ("mail is at 11", "/queues/mail/")
    assert alert.thread == "queue:mail"
    assert alert.facts["runbook"] == "https://runbooks.example/queues"
    assert alert.evidence == {
        "seen": 3,
        "value": 11,
        "limit": 10.0,
        "comparison": ">",
        "samples": 100,
    }
    assert Escalation.objects.get().subject == f"alert:{alert.pk}"


def test_a_figure_just_at_its_limit_is_none(queues):
    rule()
    queues.are(mail=10)

    assert run_tick(NOW) == 0


def test_few_samples_begin_no_alert_and_end_none(queues):
    rule(min_events=50)
    queues.readings = {"mail": {"value": 11, "samples": 49}}
    assert run_tick(NOW) == 0
    queues.readings = {"mail": {"value": 11, "samples": 50}}
    assert run_tick(NOW + MINUTE) == 1
    queues.readings = {"mail": {"value": 11, "samples": 49}}

    assert [run_tick(NOW + more * MINUTE) for more in (2, 3, 4, 5, 6)] == [0] * 5

    assert list_open_alerts() == [("deep", "mail")]


def test_an_ended_reading_resolves_its_alert_at_once_and_opens_none(queues):
    rule()
    queues.are(mail=11)
    run_tick(NOW)
    why = "The queue was deleted."
    queues.readings = {
        "mail": {"value": 11, "ended": why},
        "push": {"value": 11, "ended": why},
    }

    assert run_tick(NOW + SECOND) == 1

    alert = Alert.objects.get()
    assert (alert.resolved_at, alert.resolved_because) == (NOW + SECOND, why)


def test_few_samples_that_are_within_the_limit_end_it(queues):
    rule(min_events=50)
    queues.are(mail=11)
    run_tick(NOW)
    queues.readings = {"mail": {"value": 1, "samples": 2}}

    assert [run_tick(NOW + MINUTE), run_tick(NOW + 2 * MINUTE)] == [0, 1]


def test_what_is_unknown_neither_opens_nor_ends_an_alert(queues):
    rule()
    queues.are(mail=11)
    run_tick(NOW)
    queues.are(mail=None, other=None)

    assert [run_tick(NOW + more * MINUTE) for more in (1, 2, 3, 4)] == [0] * 4
    queues.are(mail=1)
    clean = [run_tick(NOW + 4 * MINUTE + more * 10 * SECOND) for more in range(1, 14)]

    assert (sum(clean), list_open_alerts()) == (1, [])


def test_what_is_not_fresh_begins_no_alert_and_ends_none(queues):
    rule()
    queues.readings = {"mail": {"value": 11, "is_fresh": False}}
    assert run_tick(NOW) == 0
    queues.are(mail=11)
    run_tick(NOW + SECOND)
    queues.readings = {"mail": {"value": 11, "is_fresh": False}}

    assert [run_tick(NOW + more * MINUTE) for more in (1, 2, 3, 4)] == [0] * 4


def test_a_measure_that_fails_is_told_and_is_in_no_other_rules_way(queues, caplog):
    rule()
    queues.are(mail=11)
    run_tick(NOW)
    queues.broken = True
    engaged("segment:finance", now=NOW)

    with caplog.at_level(logging.ERROR):
        changed = [run_tick(NOW + more * MINUTE) for more in (1, 2, 3, 4)]

    assert changed == [1, 0, 0, 0]
    assert list_open_alerts() == [("deep", "mail"), ("switch_engaged", "segment:finance")]
    assert "threshold.evaluation_failed" in caplog.text


def test_what_nobody_measures_any_more_is_in_nobodys_way_either(queues):
    rule()
    queues.are(mail=11)
    ThresholdRule.objects.filter(name="concurrency").update(metric="nobody_knows")

    assert run_tick(NOW) == 1


def test_a_rule_that_is_removed_or_turned_off_ends_its_alerts_at_once(queues):
    for name in ("deep", "deeper"):
        rule(name)
    queues.are(mail=11)
    run_tick(NOW)
    ThresholdRule.objects.filter(name="deep").delete()
    ThresholdRule.objects.filter(name="deeper").update(is_enabled=False)

    assert run_tick(NOW + 10 * SECOND) == 2

    why = dict(Alert.objects.values_list("rule", "resolved_because"))
    assert why == {"deep": "The rule was removed.", "deeper": "The rule was turned off."}


def test_a_rule_of_another_severity_begins_anew(queues):
    rule()
    queues.are(mail=11)
    run_tick(NOW)
    ThresholdRule.objects.filter(name="deep").update(severity="critical")

    run_tick(NOW + 10 * SECOND)
    run_tick(NOW + 20 * SECOND)

    assert list(Alert.objects.order_by("pk").values_list("severity", "resolved_because")) == [
        ("warning", "The rule was changed."),
        ("critical", ""),
    ]


def test_a_measure_is_told_what_stands_and_when_it_was_asked_last(queues):
    rule(window="")
    queues.are(mail=11, post=1)
    run_tick(NOW)
    run_tick(NOW + 10 * SECOND)

    first, second = queues.queries
    assert (first.since, list(first.standing)) == (None, [])
    assert (second.since, list(second.standing)) == (NOW, ["mail"])
    assert (second.statistic, second.comparison, second.limit) == ("now", ">", 10.0)


def test_an_alert_of_what_a_person_brought_about_calls_and_tells_nobody(queues, settings):
    reachable(settings)
    rule(severity="critical")
    queues.readings = {"mail": {"value": 11, "acknowledged_by": "user:kim"}}

    run_tick(NOW)
    queues.are()
    run_tick(NOW + 3 * MINUTE)

    alert = Alert.objects.get()
    assert (alert.acknowledged_by, alert.acknowledged_at) == ("user:kim", NOW)
    assert alert.resolved_at is not None
    assert not Escalation.objects.exists()
    assert not OutboxMessage.objects.filter(event__startswith="slo.").exists()


def test_one_that_nobody_knows_of_is_told_in_its_thread_when_it_opens_and_when_it_ends(
    queues, settings
):
    reachable(settings)
    rule()
    queues.readings = {
        "mail": {"value": 11, "thread": "queue:mail", "facts": {"to_do": "Empty it."}}
    }
    run_tick(NOW)
    queues.are()
    run_tick(NOW + 3 * MINUTE)

    begun, over = OutboxMessage.objects.filter(event__startswith="slo.").order_by("pk")
    assert (begun.event, over.event) == ("slo.alert", "slo.alert_over")
    assert begun.subject == over.subject == "queue:mail"
    assert (begun.severity, begun.payload["to_do"]) == ("warning", "Empty it.")
    assert begun.payload["said"] == "mail is at 11"


def test_whoever_says_elsewhere_that_they_know_silences_its_alert(queues):
    rule(severity="critical")
    queues.are(mail=11)
    run_tick(NOW)
    queues.readings = {"mail": {"value": 11, "acknowledged_by": "user:kim"}}

    run_tick(NOW + 10 * SECOND)

    assert Alert.objects.get().state == "acknowledged"
    assert not Escalation.objects.filter(closed_at__isnull=True).exists()


def test_the_tick_is_there_and_runs_every_ten_seconds():
    assert ticks.list_ticks()["slo.thresholds"].seconds == 10
    ticks.run("slo.thresholds", "test")
    assert Tick.objects.filter(name="slo.thresholds").exists()


def test_alerts_that_were_over_long_ago_are_forgotten_and_others_are_not(queues):
    rule()
    queues.are(mail=11, post=11)
    run_tick(NOW)
    queues.are(mail=11)
    run_tick(NOW + 3 * MINUTE)
    run_tick(NOW + 5 * MINUTE)
    period = retention_rules.ALERTS.period

    changed = [
        retention_rules.purge_rows(NOW + period + more * MINUTE, at_once=10, most=100)
        for more in (3, 4, 5)
    ]

    assert (changed, list_open_alerts()) == ([0, 1, 0], [("deep", "mail")])
    assert Alert.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_who_comes_while_another_looks_leaves_it_to_that_one(queues):
    rule()
    queues.are(mail=11)
    held, changed = threading.Event(), threading.Event()

    def hold():
        with transaction.atomic():
            lifecycle.try_lock(lifecycle.THRESHOLDS_LOCK)
            held.set()
            changed.wait(10)
        connection.close()

    other = threading.Thread(target=hold)
    other.start()
    held.wait(10)
    meanwhile = run_tick(NOW)
    changed.set()
    other.join(10)

    assert (meanwhile, run_tick(NOW)) == (0, 1)
