"""Figures of plots: each point is the worst since the one before; the budget over time."""

from datetime import timedelta

import pytest

from controlplane.core.clock import db_now
from slo.arithmetic.minutes import end_of, last_ended
from slo.dashboard import plots
from slo.evaluation import evaluator
from slo.models import Sli
from switches.tests.browsers import browser_as, engaged

from . import factories
from .month_of_events import Incident, alert, excluded, month

pytestmark = pytest.mark.django_db
URL = "/slos/core-availability/series/"


def line(found: plots.PlotLines, window: str) -> dict[int, float | None]:
    return dict(zip(found.minutes, found.lines[window], strict=True))


def test_last_point_is_what_the_judge_says_just_then():
    now = db_now()
    slo = factories.slo()
    month(slo, now, [Incident(40, 41, 0.02)], days=2)
    excluded(slo, last_ended(now) - 30, last_ended(now) - 20)
    last = last_ended(now)

    found = plots.load_burn_plot(slo, last - 60, last)
    (evaluated,) = evaluator.evaluate_slos([slo], last)

    assert found.step == 1
    assert {
        name: rates[-1] for name, rates in found.lines.items()
    } == evaluated.evaluation.burn_rates


@pytest.mark.parametrize("minutes", [360, 1440, 7 * 1440, 30 * 1440])
def test_short_burst_is_seen_however_wide_the_span(minutes):
    now = db_now()
    slo = factories.slo()
    last = last_ended(now)
    month(slo, now, [Incident(200, 6, 0.5)], days=2)

    found = plots.load_burn_plot(slo, last - minutes, last)

    assert len(found.minutes) <= plots.MAX_POINTS + 2
    assert max(rate or 0 for rate in line(found, "5m").values()) > 350


def test_points_before_anything_was_counted_are_unknown():
    now = db_now()
    slo = factories.slo()
    month(slo, now, days=1)
    last = last_ended(now)

    rates = line(plots.load_burn_plot(slo, last - 3 * 1440, last), "1h")

    assert rates[min(rates)] is None
    assert rates[last] is not None


@pytest.mark.parametrize("minutes", [1440, 30 * 1440])
def test_short_history_is_drawn_by_the_minute_in_a_wide_span(minutes):
    now = db_now()
    slo = factories.slo()
    last = last_ended(now)
    month(slo, now, days=1)
    Sli.objects.filter(slo=slo).update(first=last - 35)

    found = plots.load_burn_plot(slo, last - minutes, last)

    assert found.step == 1
    assert found.minutes[0] == last - minutes
    assert found.minutes[1:] == tuple(range(last - 35, last + 1))


def test_nothing_counted_draws_nothing():
    slo, last = factories.slo(), last_ended(db_now())

    assert plots.load_burn_plot(slo, last - 60, last).minutes == ()
    assert plots.load_budget_plot(slo, last) == plots.PlotLines((), 0, {"left": ()})
    assert plots.load_usage(slo, [last - 60, last]) == []


def test_period_of_which_nothing_is_known_draws_no_budget_and_tells_no_share():
    now = db_now()
    slo = factories.slo()
    month(slo, now, [Incident(90, 80, 0.5)], days=1)
    last = last_ended(now)

    (evaluated,) = evaluator.evaluate_slos([slo], last)
    (day,) = plots.load_usage(slo, [last - 1440, last])

    assert evaluated.evaluation.remaining_ratio is None
    assert plots.load_budget_plot(slo, last) == plots.PlotLines((), 0, {"left": ()})
    assert (day.spent, day.left) == (None, None)
    assert day.bad > 0


def test_budget_begins_whole_and_ends_with_what_is_left():
    now = db_now()
    slo = factories.slo()
    month(slo, now, [Incident(5 * 1440, 60, 0.1), Incident(600, 30, None)], days=40)
    last = last_ended(now)
    excluded(slo, last - 3 * 1440, last - 2 * 1440)

    shares = plots.load_budget_plot(slo, last).lines["left"]
    (evaluated,) = evaluator.evaluate_slos([slo], last)

    assert shares[0] == 1
    assert shares[-1] == pytest.approx(evaluated.evaluation.remaining_ratio, abs=1e-5)
    assert list(shares) == sorted(shares, reverse=True)


def test_parts_of_the_period_add_up_to_what_was_spent():
    now = db_now()
    slo = factories.slo(window_days=7)
    month(slo, now, [Incident(3000, 200, 0.01)], days=9)
    last = last_ended(now)

    days = plots.load_usage(slo, range(last - 7 * 1440, last + 1, 1440))
    (evaluated,) = evaluator.evaluate_slos([slo], last)

    remaining = evaluated.evaluation.remaining_ratio
    assert days[0].ends == end_of(last)
    assert 1 - sum(day.spent for day in days) == pytest.approx(remaining, abs=1e-5)
    assert days[0].left == pytest.approx(remaining, abs=1e-5)


def test_page_gets_lines_limits_and_what_happened_meanwhile():
    now = db_now()
    slo = factories.slo(actions=[{"do": "trip", "switch": "experiment:ranker"}])
    month(slo, now, days=1)
    engaged("experiment:ranker", now=now - timedelta(hours=1))
    raised = alert(slo, now - timedelta(hours=2), 10)

    found = browser_as("viewer").get(f"{URL}?plot=burn&range=6h").json()

    assert [one["name"] for one in found["lines"]] == ["5m", "30m", "1h", "6h"]
    assert {len(one["values"]) for one in found["lines"]} == {len(found["times"])}
    assert found["times"][-1] - found["times"][0] == 6 * 3600
    assert [(one["name"], one["severity"]) for one in found["limits"]] == [
        ("page 14×", "page"),
        ("ticket 6×", "ticket"),
    ]
    bands = {one["kind"]: one for one in found["bands"]}
    assert bands["episode"]["to"] is None
    assert bands["alert"]["to"] - bands["alert"]["from"] == 600
    assert bands["alert"]["from"] == int(raised.opened_at.timestamp())


def test_budget_of_the_page_has_one_line():
    slo, now = factories.slo(), db_now()
    month(slo, now, days=3)

    found = browser_as("viewer").get(f"{URL}?plot=budget").json()

    assert found["times"][-1] - found["times"][0] == 30 * 86_400
    assert len(found["lines"][0]["values"]) == len(found["times"])


@pytest.mark.parametrize(
    ("query", "minutes"),
    [
        ("", 1440),
        ("range=7d", 7 * 1440),
        ("range=for+ever", 1440),
        ("from=x&to=y", 1440),
        ("from=200&to=100", 1440),
        ("from=0&to=99999999999", 92 * 1440),
        ("from=-5&to=5", 1440),
    ],
)
def test_span_that_makes_no_sense_is_cut_or_the_last_day(query, minutes):
    slo, now = factories.slo(), db_now()
    month(slo, now, days=1)

    times = browser_as("viewer").get(f"{URL}?{query}").json()["times"]

    assert 0 <= minutes * 60 - (times[-1] - times[0]) < 86_400


def test_zooming_in_asks_for_finer_figures():
    slo, now = factories.slo(), db_now()
    month(slo, now, days=1)
    to = int(now.timestamp())

    found = browser_as("viewer").get(f"{URL}?from={to - 1800}&to={to}").json()

    assert found["step"] == 60
    assert len(found["times"]) >= 30


def test_whoever_is_signed_out_gets_nothing(client):
    factories.slo()

    assert client.get(URL).status_code == 302


def test_removed_counters_draw_nothing():
    slo = factories.slo()
    Sli.objects.filter(slo=slo).delete()

    assert browser_as("viewer").get(URL).json()["times"] == []
