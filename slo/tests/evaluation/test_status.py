"""The status of an SLO, now or at a time, in the API and in metrics."""

import pytest

from controlplane.core.clock import db_now
from slo import metrics
from slo.arithmetic.minutes import EVALUATION_DELAY, end_of, last_ended
from slo.evaluation.evaluator import load_status
from slo.models import SloStatus
from slo.tests import factories

from .scenarios import (
    BAD,
    MINUTE,
    NOON,
    PAGE,
    SECOND,
    TICKET,
    create_burning_slo,
    due_at,
    evaluate_minutes,
)

pytestmark = pytest.mark.django_db


def test_it_is_shown_as_it_stood_at_the_end_of_the_last_minute_before_a_time():
    slo = create_burning_slo(after=[BAD] * 3, rules=[PAGE, TICKET])

    status = load_status(slo, end_of(NOON + 2) + 30 * SECOND)

    assert status == {
        "state": "firing",
        "burn_rates": {"5m": 200.12, "30m": 33.52, "1h": 16.86, "6h": 2.976667},
        "budget": {"remaining_ratio": None, "exhausts_at": None},
        "rules": [{**PAGE, "state": "firing"}, {**TICKET, "state": "ok"}],
        "coverage": {"5m": 1.0, "30m": 1.0, "1h": 1.0, "6h": 1.0},
    }


def test_without_a_time_it_is_the_minute_that_is_judged_by_now():
    slo = factories.slo(rules=[PAGE])
    last = last_ended(db_now() - EVALUATION_DELAY)
    factories.counted(slo, [(last - 100 + n, 0.5 * n, n) for n in range(101)])

    assert load_status(slo)["state"] == "firing"


def test_long_before_anything_was_counted_nothing_is_known():
    slo = create_burning_slo()

    status = load_status(slo, end_of(NOON - 100_000))

    assert status["state"] == "unknown"
    assert set(status["burn_rates"].values()) == {None}


def test_what_is_kept_by_the_beat_is_what_is_shown_of_that_minute():
    slo = create_burning_slo(after=[BAD] * 5)

    evaluate_minutes(NOON + 3)

    stored, computed = SloStatus.objects.get(), load_status(slo, end_of(NOON + 3))
    assert (stored.state, stored.burn_rates, stored.coverage, stored.rules) == (
        computed["state"], computed["burn_rates"], computed["coverage"], computed["rules"],
    )  # fmt: skip


def samples(now):
    return {
        (one.name, *one.labels.values()): one.value
        for source in (metrics.collect_statuses, metrics.collect_alerts)
        for family in source(now)
        for one in family.samples
    }


def test_prometheus_is_told_of_burn_rates_budgets_states_and_open_alerts():
    create_burning_slo(after=[BAD] * 5)
    factories.slo("silent")
    evaluate_minutes(NOON + 2)

    status = samples(due_at(NOON + 2))

    assert status["switchgear_slo_burn_rate", "core-availability", "5m"] == 200.12
    assert status["switchgear_slo_state", "core-availability", "firing"] == 1
    assert status["switchgear_slo_state", "silent", "unknown"] == 1
    assert status["switchgear_alerts_open", "burn", "critical"] == 1
    assert status["switchgear_alerts_open", "threshold", "warning"] == 0
    assert ("switchgear_slo_burn_rate", "silent", "5m") not in status


def test_prometheus_is_told_the_budget_that_is_left():
    slo = factories.slo(window_days=1)
    factories.counted(slo, [(NOON - 1500 + n, n * 999.5, n * 1000) for n in range(1501)])
    evaluate_minutes(NOON)

    status = samples(due_at(NOON))

    assert status["switchgear_slo_budget_remaining_ratio", "core-availability"] == 0.5


def test_what_was_judged_long_ago_is_no_figure_of_now():
    create_burning_slo(after=[BAD] * 5)
    evaluate_minutes(NOON + 2)

    status = samples(due_at(NOON + 2) + 11 * MINUTE)

    assert ("switchgear_slo_burn_rate", "core-availability", "5m") not in status
    assert status["switchgear_slo_state", "core-availability", "unknown"] == 1
