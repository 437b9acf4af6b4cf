"""Trials of rules: skipping quiet minutes changes nothing."""

import random
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from slo.arithmetic.minutes import EVALUATION_DELAY, end_of
from slo.arithmetic.objective import PAGE, TICKET, BurnRateRule, Objective
from slo.backtests import replay, trials
from slo.evaluation import objective_loader
from slo.models import CounterMinute

from . import factories

pytestmark = pytest.mark.django_db
END = 29_700_000
NOW = end_of(END) + EVALUATION_DELAY
RULES = (BurnRateRule("1h", "5m", Decimal(14), PAGE), BurnRateRule("3h", "20m", Decimal(6), TICKET))


def random_history(seed, hours=12):
    """Store hours of traffic with outages, gaps and uncovered minutes."""
    dice = random.Random(seed)
    slo = factories.slo(rules=[])
    good = total = 0
    rows, share = [], 0.0
    for minute in range(END - hours * 60, END + 1):
        if dice.random() < 0.02:
            share = dice.choice([0.0, 0.0, 0.005, 0.013, 0.02, 0.3])
        events = 0 if dice.random() < 0.1 else dice.randrange(2000)
        bad = sum(dice.random() < share for _ in range(events // 50)) * 50
        total, good = total + events, good + events - bad
        rows.append((minute, good, total))
    sli = factories.counted(slo, rows)
    covered = 0
    for minute, _, _ in rows:
        covered += dice.random() < 0.8
        CounterMinute.objects.filter(sli=sli, minute=minute).update(covered=covered)
    return slo


@pytest.mark.parametrize("seed", range(4))
def test_same_alerts_as_the_backtest_that_looks_at_everything(seed):
    slo = random_history(seed)
    by = Objective(Decimal("0.999"), 30, RULES, min_events=500)

    result = trials.run_trials(slo, by, timedelta(hours=12), NOW)

    whole = replay.collect_alerts(
        replay.evaluate_ticks(slo, start=result.since, end=result.until, objective=by)
    )
    fired = [(one.rule, one.opened_at, one.resolved_at) for one in result.fired]
    assert sorted(fired, key=str) == sorted(
        ((one.rule, one.opened_at, one.resolved_at) for one in whole), key=str
    )
    assert whole  # Else this would say nothing.


def test_present_rules_are_told_beside_those_that_are_tried():
    slo = random_history(1)
    by = replace(objective_loader.load_objective(slo), rules=RULES)

    result = trials.run_trials(slo, by, timedelta(hours=12), NOW)

    assert result.pages.times + result.tickets.times == len(result.fired) > 0
    assert (result.pages_now.times, result.tickets_now.times) == (0, 0)
    assert (
        trials.run_trials(
            slo, objective_loader.load_objective(slo), timedelta(hours=12), NOW
        ).pages_now
        is None
    )


def test_places_lie_within_the_span():
    result = trials.run_trials(
        random_history(2), Objective(Decimal("0.999"), 30, RULES), timedelta(days=30), NOW
    )

    assert result.since == end_of(END - 12 * 60)
    assert all(
        0 <= begins <= 100 and width > 0 for one in result.trials for begins, width in one.places
    )
    lasted = sum((one.lasted for one in result.trials), timedelta())
    assert lasted == result.pages.lasted + result.tickets.lasted


def test_nothing_counted_is_said():
    result = trials.run_trials(
        factories.slo(), Objective(Decimal("0.9"), 30, RULES), timedelta(days=1), NOW
    )

    assert result.counted_since is None
    assert (result.fired, result.known) == ([], 0.0)
