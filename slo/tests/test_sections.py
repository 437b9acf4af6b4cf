"""Attention items of SLOs, and error budgets in the weekly report."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.core.attention import services as overview
from controlplane.core.http.tests.callers import browser_of, person
from controlplane.core.page_registry import ATTENTION_SOURCES, REPORT_SECTIONS
from slo import attention, report_sections
from slo.arithmetic.minutes import minute_of
from slo.models import Alert, EvaluatedMinute, Sli, Slo, SloStatus

from . import factories, fake_metric
from .month_of_events import Incident, alert, month, store_statuses

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
MONDAY = datetime(2026, 11, 16, tzinfo=UTC)
SUNDAY = MONDAY + timedelta(days=7)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def create_status(slo, state="ok", since=NOW - 2 * HOUR, **fields):
    columns = {"minute": minute_of(NOW), "state": state, "since": since, **fields}
    return SloStatus.objects.create(slo=slo, **columns)


def test_open_alerts_wait_until_somebody_knows():
    slo = factories.slo()
    ticket = {"rule": "6h/30m>6 ticket", "label": "ticket", "severity": "warning"}
    alert(slo, NOW - HOUR, None, **ticket)
    page = alert(slo, NOW - MINUTE, None)
    alert(slo, NOW - 3 * HOUR, 20, rule="past")
    known = alert(slo, NOW - 2 * HOUR, None, rule="known")
    Alert.objects.filter(pk=known.pk).update(acknowledged_at=NOW, acknowledged_by="user:kim")

    found = attention.list_alerts_and_gaps(NOW)

    assert [(one.severity, one.since) for one in found] == [
        ("critical", NOW - MINUTE),
        ("warning", NOW - HOUR),
    ]
    assert found[0].path == f"/alerts/{page.pk}/"
    assert found[0].detail == "Not evaluated yet. Acknowledge the alert to pause its escalation."


def test_page_of_all_that_waits_takes_few_queries_with_slos():
    client = browser_of(person())
    for name in ("one", "two"):
        factories.slo(name=name)
    client.get("/attention/")

    with CaptureQueriesContext(connection) as queries:
        assert client.get("/attention/").status_code == 200

    # Only a test has a transaction around it, and so savepoints.
    assert len([one for one in queries if "SAVEPOINT" not in one["sql"]]) < 15


def test_storm_of_what_waits_elsewhere_hides_no_other_alert(monkeypatch):
    monkeypatch.setattr(attention, "MAX_ITEMS", 2)
    slo, rule = factories.slo(), fake_metric.rule()
    deep = {"kind": "threshold", "rule": rule.name, "threshold": rule}
    with fake_metric.register_metric(waiting=lambda _now: [f"queue-{place}" for place in range(9)]):
        for place in range(10):
            alert(slo, NOW - HOUR, None, **deep, subject=f"queue-{place}")
        page = alert(slo, NOW - MINUTE, None)
        found = attention.list_alerts_and_gaps(NOW)

    other = Alert.objects.get(subject="queue-9")
    assert [one.path for one in found] == [f"/alerts/{one.pk}/" for one in (other, page)]


def test_source_that_can_not_be_read_is_told_with_its_error():
    factories.slo("fine")
    slo = factories.slo("oracle-p95")
    Sli.objects.filter(slo=slo).update(source_error="no answer in 5 s", source_error_since=NOW)
    removed = factories.slo("gone")
    Sli.objects.filter(slo=removed).update(source_error="no answer in 5 s")
    Slo.objects.filter(pk=removed.pk).update(removed_at=NOW)

    (one,) = attention.list_unread_sources(NOW)

    assert (one.title, one.path) == ("The source of oracle-p95 can't be read", "/slos/oracle-p95/")
    assert one.detail == "no answer in 5 s"


@pytest.mark.parametrize(("age", "count"), [(59 * MINUTE, 0), (HOUR, 1)])
def test_one_of_which_nothing_is_known_for_an_hour_is_told_of(age, count):
    create_status(factories.slo(), "unknown", NOW - age)

    assert len(attention.list_alerts_and_gaps(NOW)) == count


@pytest.mark.parametrize(("states", "count"), [(["ok"], 0), (["ok", "unknown"], 1)])
def test_one_whose_rules_can_still_fire_is_not_told_of(states, count):
    rules = [{"state": state} for state in states]
    create_status(factories.slo(), "unknown", NOW - HOUR, rules=rules)

    assert len(attention.list_alerts_and_gaps(NOW)) == count


def test_one_without_rules_is_only_mentioned():
    create_status(factories.slo(rules=[]), "unknown")

    assert [one.severity for one in attention.list_alerts_and_gaps(NOW)] == ["info"]


@pytest.mark.parametrize(("remaining", "shares"), [(0.01, []), (0, ["100%"]), (-0.25, ["125%"])])
def test_budget_that_is_spent_is_told_of(remaining, shares):
    create_status(factories.slo(), remaining_ratio=remaining)

    found = attention.list_exhausted(NOW)

    assert [one.detail.split(" ")[0] for one in found] == shares


@pytest.mark.parametrize(("age", "count"), [(4, 0), (6, 1)])
def test_judging_that_stands_still_is_critical(age, count):
    Slo.objects.update(created_at=NOW - HOUR)
    slo = factories.slo()
    Slo.objects.filter(pk=slo.pk).update(created_at=NOW - HOUR)
    EvaluatedMinute.objects.create(minute=minute_of(NOW) - age, evaluated_at=NOW)

    found = attention.list_evaluation_stopped(NOW)

    assert [one.severity for one in found] == ["critical"] * count


def test_nothing_to_judge_is_no_trouble():
    assert attention.list_evaluation_stopped(NOW) == []


def test_new_one_is_given_time_to_be_judged():
    slo = factories.slo()
    Slo.objects.filter(pk=slo.pk).update(created_at=NOW - MINUTE)

    assert attention.list_evaluation_stopped(NOW) == []


def test_pages_of_attention_and_report_know_all_of_it():
    functions = [source.function for source in ATTENTION_SOURCES.values()]
    assert attention.list_alerts_and_gaps in functions
    assert report_sections.budgets_section in REPORT_SECTIONS.functions()
    assert not overview.read_all(timezone.now()).unread


def test_report_has_the_worst_first_with_what_the_week_spent():
    bad, fine = factories.slo("bad", target=0.999), factories.slo("fine", target=0.9)
    silent = factories.slo("silent")
    until = SUNDAY - HOUR
    month(bad, until, [Incident(2000, 30, 0.9)], days=20)
    month(fine, until, days=20)
    store_statuses([bad, fine, silent], until)
    alert(bad, SUNDAY - timedelta(days=2), 30)

    section = report_sections.budgets_section(MONDAY, SUNDAY, until)

    assert [row.cells["objective"] for row in section.rows] == ["bad", "fine", "silent"]
    worst, best, unknown = (row.cells for row in section.rows)
    assert worst["left"].startswith("-") or worst["left"] < best["left"]
    assert (worst["pages"], best["pages"]) == (1, 0)
    assert best["left"] == "99.8 %"
    assert (unknown["left"], unknown["spent_this_week"]) == ("", "")
    assert section.rows[0].path == "/slos/bad/"
    assert "Too little data for 1 budget." in section.summary
    assert "1 page and 0 tickets in the week." in section.summary


def test_report_draws_the_days_of_those_that_burned_most():
    slo = factories.slo("core-availability", target=0.99)
    month(slo, SUNDAY - HOUR, [Incident(1440 + 600, 60, 0.9)], days=20)

    (chart,) = report_sections.budgets_section(MONDAY, SUNDAY, SUNDAY - HOUR).charts

    days = dict(chart.bars)
    assert len(days) == 7
    assert max(days, key=lambda day: days[day]) == "Sat 21"
    assert chart.title == "core-availability: budget spent per day"


def test_report_is_bad_once_a_budget_is_gone():
    slo = factories.slo(target=0.9999)
    month(slo, SUNDAY - HOUR, [Incident(600, 60, 0.9)], days=20)

    section = report_sections.budgets_section(MONDAY, SUNDAY, SUNDAY - HOUR)

    assert section.tone == "bad"
    assert section.summary.startswith("core-availability has no budget left.")


def test_budget_of_just_nothing_is_told_as_gone():
    slo, until = factories.slo(target=0.99), SUNDAY - HOUR
    end = minute_of(until)
    factories.counted(slo, [(end - 5_000, 0, 0), (end, 9_900, 10_000)])

    section = report_sections.budgets_section(MONDAY, SUNDAY, until)

    assert (section.rows[0].cells["left"], section.tone) == ("0 %", "bad")
    assert section.summary.startswith("core-availability has no budget left.")


def test_report_of_budgets_that_are_not_known_does_not_call_them_fine():
    factories.slo("silent")

    section = report_sections.budgets_section(MONDAY, SUNDAY, SUNDAY - HOUR)

    assert (section.summary, section.tone) == ("Too little data for 1 budget.", "unknown")


def test_report_without_any_says_so():
    section = report_sections.budgets_section(MONDAY, SUNDAY, SUNDAY)

    assert (section.summary, section.rows, section.tone) == ("No SLOs.", (), "good")


@pytest.mark.parametrize(
    ("share", "formatted"),
    [
        (0.824, "82.4 %"),
        (1, "100 %"),
        (0.00004, "0 %"),
        (-0.00004, "0 %"),
        (-12.5, "-1,250 %"),
        (None, ""),
    ],
)
def test_share_is_said_shortly(share, formatted):
    assert report_sections.format_percent(share) == formatted
