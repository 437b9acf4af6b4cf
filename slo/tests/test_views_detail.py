"""The page of one SLO: status, reasons why it is unknown, and tables in place of plots."""

from datetime import timedelta

import pytest

from controlplane.core.clock import db_now
from slo.arithmetic.minutes import end_of, last_ended
from slo.models import Sli, Slo, SloStatus
from slo.objectives import services
from switches.tests.browsers import PART, browser_as, engaged, page, text

from . import factories
from .month_of_events import Incident, alert, excluded, month, store_statuses

pytestmark = pytest.mark.django_db
ONE = "/slos/core-availability/"


def get_page(path: str = ONE, role: str = "viewer") -> str:
    return page(browser_as(role).get(path))


def test_unknown_name_is_not_found():
    assert browser_as("viewer").get("/slos/nothing/").status_code == 404


def test_firing_one_says_which_rule_how_fast_and_what_is_left():
    now = db_now()
    slo = factories.slo()
    month(slo, now, [Incident(30, 31, 0.05)], days=2)
    store_statuses([slo], now)
    alert(slo, now - timedelta(minutes=20), None, summary="burned at 25× over 1 h")

    content = text(get_page(role="operator"))

    assert "core-availability Paging" in content
    assert "99.9 % of requests served well, over 30 days" in content
    assert "Firing for 31 min" in content
    assert "burned at 25× over 1 h" in content
    assert "Review" in content
    assert "Page above 14× 1 h 2" in content
    assert "Why it is unknown" not in content


def test_window_that_is_covered_and_not_known_says_why():
    now = db_now()
    slo = factories.slo()
    month(slo, now, days=2)
    store_statuses([slo], now)
    SloStatus.objects.update(burn_rates={"1h": 0.2, "5m": None}, coverage={"1h": 1, "5m": 1})

    content = text(get_page())

    assert "No events in the last 5 min." in content


def test_never_judged_says_so():
    factories.slo()

    content = text(get_page())

    assert "No events yet: push points to /api/v1/sli/" in content
    assert "Evaluated up to –" in content


@pytest.mark.parametrize(("days", "period"), [(1, "1 day, rolling"), (30, "30 days, rolling")])
def test_period_is_said_as_people_say_it(days, period):
    factories.slo(window_days=days)

    assert f"Period{period}" in text(get_page())


@pytest.mark.parametrize(
    ("fields", "minutes_ago", "incidents", "shown", "hidden"),
    [
        pytest.param(
            {},
            0,
            [Incident(58, 59, None)],
            [
                "No events for 59 min.",
                "Samples cover 1 min of the last 1 h; 6 min are needed.",
            ],
            ["of the last 6 h;"],
            id="a window that is not covered",
        ),
        pytest.param(
            {},
            0,
            [Incident(20, 21, None)],
            ["core-availability Unknown", "No events for 21 min.", "5 min – Unknown"],
            ["core-availability OK"],
            id="silence while a long window is known",
        ),
        pytest.param(
            {"min_events": 10_000_000},
            0,
            [],
            ["Fewer than 10,000,000 events in the last 1 h."],
            [],
            id="too few events",
        ),
        pytest.param({}, 180, [], ["No events for 3 h"], [], id="silence in hours"),
    ],
)
def test_page_explains_what_is_unknown(fields, minutes_ago, incidents, shown, hidden):
    now = db_now()
    slo = factories.slo(**fields)
    month(slo, now - timedelta(minutes=minutes_ago), incidents, days=1)
    store_statuses([slo], now)

    content = text(get_page())

    assert [sentence for sentence in shown if sentence not in content] == []
    assert [sentence for sentence in hidden if sentence in content] == []


def test_source_error_stands_above_all():
    slo = factories.slo()
    Sli.objects.filter(slo=slo).update(
        source_error="connection refused <b>", source_error_since=db_now()
    )

    html = get_page()

    assert "Its source can't be read" in html
    assert "connection refused &lt;b&gt;" in html


def test_budget_that_will_be_spent_says_when():
    now = db_now()
    slo = factories.slo()
    store_statuses([slo], now)
    SloStatus.objects.update(
        remaining_ratio=0.5, exhausts_at=now + timedelta(days=3, hours=4, seconds=30)
    )

    assert "spent in 3 d 4 h at the rate of the last 6 h" in text(get_page())


def test_hours_and_days_stand_in_for_the_plots():
    now = db_now()
    slo = factories.slo(window_days=1)
    last = last_ended(now)
    rows = [(last - 180, 0.0, 0.0), (last - 120, 1000.0, 1000.0), (last - 60, 1900.0, 2000.0)]
    factories.counted(slo, [*rows, (last, 2900.0, 3000.0)])

    html = get_page()

    assert html.count("data-plot-table") == 2
    hours, days = html.split("Last 24 hours as a table")[1].split("Days as a table")
    assert "1,000 100 100× 3,333 %" in text(hours)
    assert "−3,233 %" in text(days)


def test_what_happened_meanwhile_is_listed():
    now = db_now()
    slo = factories.slo(actions=[{"do": "trip", "switch": "experiment:ranker"}])
    engaged("experiment:ranker", now=now - timedelta(hours=1))
    engaged("segment:elsewhere", now=now - timedelta(hours=1))
    alert(slo, now - timedelta(hours=2), 10)
    last = last_ended(now)
    excluded(slo, last - 300, last - 240, reason="CHG-2207 <i>database</i>")
    excluded(slo, last - 9000, last - 8000)

    html = get_page()
    content = text(html)

    assert "experiment:ranker" in content
    assert "elsewhere" not in content
    assert "Page 1h/5m" in content
    assert html.count("mark--exclusion") == 1
    assert "CHG-2207 &lt;i&gt;database&lt;/i&gt;" in html


def test_exclusion_that_was_taken_back_is_struck_through():
    slo, now = factories.slo(), db_now()
    last = last_ended(now)
    excluded(slo, last - 90, last - 60, removed_at=now, removed_by="user:olga")

    assert 'class="event slo-taken-back"' in get_page()


def test_change_is_told_in_words():
    factories.slo()
    services.put_slo(
        name="core-availability",
        fields={"service": "core", "target": 0.995},
        reason="agreed with product",
        actor=factories.ADMIN,
        now=db_now(),
    )

    content = text(get_page())

    assert "99.9 % 99.5 %" in content
    assert "agreed with product" in content


def test_removed_one_keeps_its_page_until_there_is_a_new_one():
    factories.slo(owner="before")
    services.remove_slo(name="core-availability", actor=factories.ADMIN, now=db_now())
    assert "removed" in get_page()

    factories.slo(owner="after")

    assert "owner after" in get_page(role="operator")


@pytest.mark.parametrize(("to", "is_listed"), [(0, True), (-600, False)])
def test_switch_engaged_just_now_is_an_event_of_a_range_until_now(to, is_listed):
    now = db_now()
    factories.slo(actions=[{"do": "trip", "switch": "feature:ranker"}])
    engaged("feature:ranker")
    until = int(now.timestamp()) + to

    html = get_page(f"{ONE}?from={until - 3600}&to={until}")

    assert ("Events in this range" in text(html)) is is_listed
    assert "Changes in the last hour" in text(html)
    assert "to now feature:ranker engaged" in text(html)


@pytest.mark.parametrize(("role", "may"), [("viewer", False), ("admin", True)])
def test_only_who_may_is_offered_to_edit(role, may):
    factories.slo()

    assert ("do-edit" in get_page(role=role)) is may


def test_live_part_has_no_plots_and_renews_what_is_below_them():
    factories.slo()

    html = page(browser_as("viewer").get(ONE, headers=PART))

    assert html.startswith('<div id="live"')
    assert "data-plot" not in html
    assert '<div id="below" hx-swap-oob="merge">' in html


def test_late_judgement_is_said_to_be():
    slo, now = factories.slo(), db_now()
    store_statuses([slo], now - timedelta(minutes=30))

    content = text(get_page())

    assert "Not evaluated since" in content
    assert end_of(last_ended(now) - 30).strftime("%H:%M") in content


def test_rule_that_was_changed_is_unknown_until_it_is_judged():
    slo, now = factories.slo(), db_now()
    month(slo, now, days=1)
    store_statuses([slo], now)
    Slo.objects.update(rules=[{"long": "1h", "short": "5m", "burn_rate": 10, "severity": "page"}])

    html = get_page()

    assert "slo-rules__unknown" in html
    assert "slo-rules__ok" not in html
