"""Open emergency orders as Prometheus and threshold metrics."""

from datetime import timedelta

import pytest

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from controlplane.core.threshold_metrics import MetricQuery
from switches.emergency import metrics, threshold_metrics

from .orders import reconcile, store, store_by

pytestmark = pytest.mark.django_db
ANY = MetricQuery("now", ">", 0)
MINUTE = timedelta(minutes=1)


def read_gauge():
    (family,) = metrics.collect_open_orders(db_now())
    return {sample.labels["state"]: sample.value for sample in family.samples}


def read_figures(now):
    return [
        (one.subject, one.value, one.summary) for one in threshold_metrics.read_unsettled(ANY, now)
    ]


def test_the_gauge_counts_open_orders():
    assert read_gauge() == {"received": 0, "refused": 0}
    lee = person("operator", "lee")

    store_by(lee)
    store_by(lee, "feature:beta")
    assert read_gauge() == {"received": 2, "refused": 0}
    reconcile()
    assert read_gauge() == {"received": 0, "refused": 2}
    reconcile(db_now() + 10 * MINUTE)
    assert read_gauge() == {"received": 0, "refused": 0}


def test_the_threshold_metric_has_orders_that_stay_open():
    fresh = store()
    assert read_figures(fresh.received_at) == []

    (figure,) = read_figures(fresh.received_at + MINUTE)

    assert figure == (
        "segment:finance",
        1,
        "The emergency order for segment:finance is not reconciled",
    )
    reconcile()
    assert read_figures(db_now() + MINUTE) == []


def test_the_threshold_metric_has_refused_orders():
    store_by(person("operator", "lee"))
    reconcile()

    ((switch, _, summary),) = read_figures(db_now())

    assert (switch, summary) == (
        "segment:finance",
        "The emergency order for segment:finance was refused",
    )
    assert threshold_metrics.list_listed(db_now()) == {"segment:finance"}
