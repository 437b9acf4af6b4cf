"""Percentiles of pushed histograms as threshold rules see them."""

from datetime import timedelta

import pytest

from controlplane.core.threshold_metrics import MetricQuery
from slo.arithmetic.minutes import last_ended
from slo.models import Alert, CounterMinute, Sli, ThresholdRule
from slo.threshold_metrics import read_latency

from .fake_metric import MINUTE, NOW, run_tick

pytestmark = pytest.mark.django_db
AT = last_ended(NOW)
ASKED = MetricQuery("p95", ">", 5000.0, timedelta(minutes=5))


def histogram(edges, service="core", metric="e2e", *, per_minute=100, minutes=10, covered=True):
    """Push so many events each minute, with cumulative counts by edge (milliseconds)."""
    for ms, within in edges.items():
        sli = Sli.objects.create(
            service=service,
            metric=metric,
            edge_ms=ms,
            first=AT - minutes,
            last=AT,
            created_at=NOW,
        )
        CounterMinute.objects.bulk_create(
            CounterMinute(
                sli=sli,
                minute=AT - minutes + place,
                good=within * place,
                total=per_minute * place,
                covered=place if covered else 0,
            )
            for place in range(minutes + 1)
        )


def read_one(query=ASKED, now=NOW):
    return {one.subject: one for one in read_latency(query, now)}


def test_it_is_above_the_limit_if_fewer_than_its_share_were_within():
    histogram({1000: 80, 5000: 94, 10000: 100})

    one = read_one()["core/e2e"]

    assert (one.beyond, one.value, one.samples) == (True, 10000, 500)
    assert one.service == "core"
    assert one.summary == (
        "The p95 of core/e2e is at most 10,000 ms in 5 min "
        "(limit 5,000 ms; 94.0% took at most 5,000 ms; 500 events)"
    )


def test_exactly_its_share_within_the_limit_is_not_above_it():
    histogram({1000: 80, 5000: 95, 10000: 100})

    assert read_one()["core/e2e"].beyond is False
    assert (
        read_one(MetricQuery("p95", "<=", 5000.0, timedelta(minutes=5)))["core/e2e"].beyond is True
    )


def test_without_an_edge_at_the_limit_it_is_unknown_and_says_why():
    histogram({4000: 90, 6000: 99})

    one = read_one()["core/e2e"]

    assert one.beyond is None
    assert (
        one.summary
        == "core/e2e has no edge at 5,000 ms, and the nearest ones (4,000 and 6,000 ms) are not"
        " conclusive"
    )


def test_what_nobody_has_pushed_lately_is_unknown():
    histogram({5000: 10})

    late = read_one(now=NOW + 6 * MINUTE)["core/e2e"]
    uncovered = read_one(now=NOW + MINUTE)["core/e2e"]

    assert (late.beyond, late.samples, uncovered.beyond) == (None, 0, None)
    assert late.summary == "Too few data on core/e2e in 5 min"


def test_a_part_of_the_measure_is_the_histograms_of_one_metric():
    histogram({5000: 10})
    histogram({5000: 10}, metric="database")

    assert set(read_one()) == {"core/e2e", "core/database"}
    assert set(read_one(MetricQuery("p95", ">", 5000.0, timedelta(minutes=5), part="e2e"))) == {
        "core/e2e"
    }


def test_counters_of_slos_are_no_histograms_and_without_any_nothing_is_known():
    Sli.objects.create(created_at=NOW, first=AT, last=AT)

    (one,) = read_latency(ASKED, NOW)

    assert (one.beyond, one.summary) == (None, "No latency histogram was pushed")


def test_the_rule_of_the_beginning_opens_an_alert_and_ends_it():
    histogram({5000: 90})
    histogram({5000: 0}, service="quiet", per_minute=3)
    histogram({5000: 0}, service="nightly", metric="batch")
    ThresholdRule.objects.exclude(name="e2e_latency").update(is_enabled=False)
    sli = Sli.objects.get(service="core")
    last = CounterMinute.objects.get(sli=sli, minute=AT)
    CounterMinute.objects.bulk_create(
        CounterMinute(
            sli=sli,
            minute=AT + place,
            good=last.good + 100 * place,
            total=last.total + 100 * place,
            covered=last.covered + place,
        )
        for place in range(1, 6)
    )

    changed = [run_tick(NOW + place * MINUTE) for place in range(5)]

    assert changed == [1, 0, 0, 0, 1]
    alert = Alert.objects.get()
    assert (alert.rule, alert.subject, alert.severity) == ("e2e_latency", "core/e2e", "warning")
    assert alert.evidence["within"] == {"5000": 0.9}
