"""SLOs that count minutes: a minute is good from its slice target on."""

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slo.arithmetic.minutes import MINUTES_A_DAY, end_of
from slo.arithmetic.timeslices import count_slices
from slo.arithmetic.windows import CounterValues
from slo.backtests import history as backtests
from slo.counters import compaction
from slo.dashboard import plots
from slo.evaluation import budgets, evaluator
from slo.evaluation.gates import answer_open_gates
from slo.models import CounterHour
from slo.objectives import exclusions
from slo.tests import factories

from .scenarios import NOON

SLICE = Decimal("0.95")
REASON = "the load test of the shop, announced"


def cumulate(minutes):
    """Return cumulative counters, with a baseline, of (good, total) by minute."""
    found = [CounterValues(0.0, 0.0, 0)]
    for good, total in minutes:
        last = found[-1]
        found.append(CounterValues(last.good + good, last.total + total, last.covered + 1))
    return found


@pytest.mark.parametrize(
    ("good", "total", "expected"),
    [
        (95, 100, (1, 1)),
        (94, 100, (0, 1)),
        (0, 0, (0, 0)),
        (19, 20, (1, 1)),
        (9.5, 10.0, (1, 1)),
        (9.4, 10.0, (0, 1)),
        (0.95 / 3, 1 / 3, (1, 1)),
    ],
)
def test_minute_is_good_from_the_slice_target_on(good, total, expected):
    found = count_slices(cumulate([(good, total)]), SLICE)

    assert (found[-1].good, found[-1].total) == expected


@given(
    st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), max_size=50),
    st.integers(1, 99),
)
def test_slices_equal_those_of_each_minute_by_itself(bad_and_total, percent):
    minutes = [(max(total - bad, 0), total) for bad, total in bad_and_total]

    found = count_slices(cumulate(minutes), Decimal(percent) / 100)

    assert found[-1].total == sum(total > 0 for _, total in minutes)
    assert found[-1].good == sum(t > 0 and g * 100 >= t * percent for g, t in minutes)


def create_slo(bad_minutes, target=0.99, window_days=1, **fields):
    """Create an SLO with 100 events a minute for 24 hours; in bad minutes, 10 of them fail."""
    slo = factories.slo(
        "shop-minutes", target=target, window_days=window_days, slice_target=0.95, **fields
    )
    rows, good, total = [(NOON - MINUTES_A_DAY, 0, 0)], 0, 0
    for minute in range(NOON - MINUTES_A_DAY + 1, NOON + 1):
        total += 100
        good += 90 if NOON - minute in bad_minutes else 99
        rows.append((minute, good, total))
    factories.counted(slo, rows)
    return slo


@pytest.mark.django_db
def test_budget_is_spent_by_bad_minutes_alone():
    # 1,440 minutes, of which 14.4 may be bad; the bad event of each other minute costs nothing.
    slo = create_slo(range(0, 72, 10))

    (found,) = evaluator.evaluate_slos([slo], NOON)

    assert found.evaluation.remaining_ratio == pytest.approx(1 - 8 / 14.4, abs=1e-6)
    assert found.evaluation.burn_rates["1h"] == pytest.approx(6 / 60 / 0.01, abs=1e-6)
    assert found.evaluation.windows["1h"].total == 60


@pytest.mark.django_db
def test_rule_fires_and_stops_by_minutes():
    rule = {"long": "1h", "short": "5m", "burn_rate": 5, "severity": "page"}
    slo = create_slo(range(10, 16), rules=[rule])

    states = {
        back: evaluator.evaluate_slos([slo], NOON - back)[0].evaluation.state
        for back in (16, 12, 10, 4)
    }

    assert states == {16: "ok", 12: "firing", 10: "firing", 4: "ok"}


@pytest.mark.django_db
def test_excluded_minutes_do_not_count():
    slo = create_slo(range(30, 40))
    before, effect = None, budgets.estimate_exclusion(slo, (NOON - 40, NOON - 30), NOON)
    (before,) = evaluator.evaluate_slos([slo], NOON)

    exclusions.add_exclusion(
        name=slo.name, starts_at=end_of(NOON - 40), ends_at=end_of(NOON - 30), reason=REASON,
        actor=factories.ADMIN, now=end_of(NOON),
    )  # fmt: skip
    (after,) = evaluator.evaluate_slos([slo], NOON)

    assert (effect.bad, effect.total) == (10, 10)
    assert before.evaluation.remaining_ratio == pytest.approx(1 - 10 / 14.4, abs=1e-6)
    assert after.evaluation.remaining_ratio == effect.after == 1


@pytest.mark.django_db
def test_backtest_and_plots_agree_with_the_status():
    slo = create_slo(range(5, 35))
    start, end = end_of(NOON - 60), end_of(NOON)

    series = backtests.load_series(slo, since=start, until=end, step=600, now=end)
    burning = plots.load_burn_plot(slo, NOON - 60, NOON)
    usage = plots.load_usage(slo, [NOON - 60, NOON])

    for point, back in zip(series["points"], range(60, -1, -10), strict=True):
        (one,) = evaluator.evaluate_slos([slo], NOON - back)
        assert point["burn_rates"] == dict(one.evaluation.burn_rates)
        assert point["remaining_ratio"] == one.evaluation.remaining_ratio
    assert burning.lines["1h"][-1] == series["points"][-1]["burn_rates"]["1h"]
    assert (usage[0].bad, usage[0].total) == (30, 60)


@pytest.mark.django_db
def test_backtest_of_another_slice_target_counts_other_minutes():
    slo = create_slo(range(5, 35))
    start, end = end_of(NOON - 60), end_of(NOON)

    def states(**instead):
        found = backtests.run_backtest(
            slo, start=start, end=end, step=None, instead=instead, each=False, now=end
        )
        return found["states"]

    assert states().get("firing")
    assert states(slice_target=0.9) == {"ok": 61}


@pytest.mark.django_db
def test_packed_hours_count_the_same_minutes():
    slo = create_slo(range(0, 200, 7))
    (before,) = evaluator.evaluate_slos([slo], NOON)

    compaction.compact_minutes(end_of(NOON) + timedelta(days=4), most=100)

    (after,) = evaluator.evaluate_slos([slo], NOON)
    assert CounterHour.objects.filter(sli__slo=slo).exists()
    assert after.evaluation == before.evaluation


@pytest.mark.django_db
def test_gate_of_a_ramp_measures_events_against_the_slice_target():
    from controlplane.core.gates import services as gates
    from controlplane.core.gates.models import Gate
    from controlplane.core.gates.questions import GateQuestion

    slo = create_slo(range(10))
    now = end_of(NOON) + timedelta(seconds=30)
    spec = {"type": "slo", "slo": slo.name, "window": "5m", "max_burn_rate": 1.5, "min_events": 100}
    gates.store_questions([GateQuestion("ramp:1:0:0", spec, now - timedelta(minutes=10))])

    answer_open_gates(now)

    assert Gate.objects.get().evidence["burn_rate"] == pytest.approx(2.0)  # 10 % of at most 5 %.
