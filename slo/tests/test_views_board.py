"""The board of SLOs: order, filters and rows."""

from datetime import timedelta

import pytest

from controlplane.core.clock import db_now
from slo.arithmetic.minutes import last_ended
from slo.models import CounterMinute, Sli, Slo, SloStatus
from switches.tests.browsers import PART, Tags, browser_as, page, switches_shown, text

from . import factories
from .month_of_events import alert, excluded

pytestmark = pytest.mark.django_db
PAGING = [{"long": "1h", "short": "5m", "burn_rate": 14, "severity": "page", "state": "firing"}]
TICKETING = [{**PAGING[0], "severity": "ticket"}]


def create_status(
    slo: Slo, state: str = "ok", remaining: float | None = 0.8, **fields
) -> SloStatus:
    """Store a status of an SLO, a minute old unless `fields` say otherwise."""
    now = db_now()
    columns = {
        "minute": last_ended(now),
        "since": now - timedelta(minutes=12),
        "burn_rates": {"1h": 0.2},
        **fields,
    }
    return SloStatus.objects.create(slo=slo, state=state, remaining_ratio=remaining, **columns)


def columns(html: str, look: str) -> int:
    """Count the half hours drawn in a style."""
    paths = Tags(html).having("path", class_=f"burn__{look}")
    return sum(str(path["d"]).count("M") for path in paths)


def get_page(query: str = "") -> str:
    return page(browser_as("viewer").get(f"/slos/{query}"))


def test_nothing_wanted_says_how_to_begin():
    assert "config load" in get_page()


def test_signed_out_is_led_to_sign_in(client):
    assert client.get("/slos/").status_code == 302


def test_rows_come_the_worst_first():
    create_status(factories.slo("calm"), remaining=0.9)
    create_status(factories.slo("tight"), remaining=0.1)
    create_status(factories.slo("blind"), "unknown", None)
    factories.slo("fresh")
    create_status(factories.slo("spent"), remaining=-0.2)
    create_status(factories.slo("spent-and-blind"), "unknown", -0.1)
    create_status(factories.slo("ticketing"), "firing", rules=TICKETING)
    create_status(factories.slo("paging"), "firing", rules=PAGING)

    html = get_page()

    assert switches_shown(html) == [
        *("paging", "ticketing", "spent", "spent-and-blind", "blind", "fresh", "tight", "calm"),
    ]
    assert "2 firing" in text(html)
    assert "2 spent" in text(html)
    assert "1 paging now." in text(html)
    assert "2 unknown" in text(html)
    assert "8 objectives. Unknown ones open no alerts; a ramp's gate judges the" in text(html)


def test_headline_counts_what_is_not_known_and_calls_only_the_rest_met():
    create_status(factories.slo("calm"), remaining=0.9)
    create_status(factories.slo("blind"), "unknown", None)
    factories.slo("fresh")

    html = get_page()

    headline = text(html.split("<h1", 1)[1].split("</h1>", 1)[0])
    assert ("2 unknown" in headline, "1 OK" in headline) == (True, True)
    assert "objectives OK" not in html
    assert "headline--calm" not in html


def test_headline_is_calm_only_where_every_objective_is_known():
    create_status(factories.slo("calm"), remaining=0.9)

    html = get_page()

    assert "All objectives OK" in text(html)
    assert "headline--calm" in html


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("?state=firing", ["paging"]),
        ("?state=spent", ["spent"]),
        ("?state=unknown", ["blind"]),
        ("?state=ok", ["calm"]),
        ("?service=checkout", ["calm"]),
        ("?q=PAG", ["paging"]),
        ("?q=olga", ["spent"]),
        ("?state=nonsense&page=nonsense", ["paging", "spent", "blind", "calm"]),
    ],
)
def test_filters_narrow_the_board(query, names):
    create_status(factories.slo("calm", service="checkout"))
    create_status(factories.slo("blind"), "unknown", None)
    create_status(factories.slo("spent", owner="Olga"), remaining=0.0)
    create_status(factories.slo("paging"), "firing", rules=PAGING)

    assert switches_shown(get_page(query)) == names


def test_filter_without_a_match_offers_all():
    factories.slo()

    assert "No matching objectives" in text(get_page("?q=nothing"))


def test_removed_one_is_not_shown():
    slo = factories.slo()
    Slo.objects.filter(pk=slo.pk).update(removed_at=db_now())

    assert switches_shown(get_page()) == []


def test_row_tells_target_budget_burn_and_forecast():
    now = db_now()
    slo = factories.slo(kind="latency", target=0.95, threshold_ms=3000)
    create_status(slo, remaining=0.847, exhausts_at=now + timedelta(days=3, hours=4, seconds=50))

    content = text(get_page())

    assert "95 % within 3,000 ms over 30 d" in content
    assert "84 %" in content
    assert "spent in 3 d 4 h" in content
    assert "0.2×" in content


def test_overspent_budget_has_a_minus():
    create_status(factories.slo(), remaining=-0.123)

    assert "−12 %" in text(get_page())


def test_day_is_drawn_by_half_hours_and_unknown_is_not_none():
    slo, last = factories.slo(), last_ended(db_now())
    minutes = range(last - 120, last + 1)
    factories.counted(slo, [(m, 9.0 * (m - last + 120), 10.0 * (m - last + 120)) for m in minutes])
    create_status(slo)

    html = get_page()

    assert columns(html, "grave") == 4
    assert columns(html, "none") == 44
    assert "at most 100×; no data for 22 h" in html


def test_excluded_half_hour_is_unknown():
    slo, last = factories.slo(), last_ended(db_now())
    minutes = range(last - 120, last + 1)
    factories.counted(slo, [(m, 9.0 * (m - last + 120), 10.0 * (m - last + 120)) for m in minutes])
    excluded(slo, last - 60, last)

    assert columns(get_page(), "grave") == 2


def test_judgement_that_is_late_is_said_to_be():
    create_status(factories.slo(), "firing", minute=last_ended(db_now()) - 9, rules=PAGING)

    content = text(get_page())

    assert "No SLO has been evaluated since" in content
    assert "no update since" in content
    assert "paging now" not in content


def test_firing_row_says_since_when_and_the_rate_of_its_rule():
    rates = {"5m": 7.93, "1m": 5.13, "1h": 0.78}
    rule = {"long": "5m", "short": "1m", "burn_rate": 3, "severity": "page", "state": "firing"}
    status = create_status(factories.slo(), "firing", rules=[rule], burn_rates=rates)

    content = text(get_page())

    assert f"Paging since {status.since:%H:%M}" in content
    assert "7.93× over 5 min, limit 3×" in content
    assert "0.78× over 1 h" in content


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        pytest.param([], "No data yet", id="no data"),
        pytest.param([(35, 0), (0, 100)], "Needs 3 d of data, has 35 min", id="too short"),
        # Data ended an hour ago, so that it is less than the time since it began.
        pytest.param([(64, 0), (60, 100)], "Needs 3 d of data, has 4 min", id="silence since"),
        pytest.param([(4500, 0), (0, 0)], "Too few events", id="no events"),
        pytest.param([(4500, 0), (0, 100)], "Not evaluated yet", id="known since"),
    ],
)
def test_unknown_budget_says_why(rows, reason):
    slo = factories.slo()
    create_status(slo, "unknown", None)
    last = last_ended(db_now())
    if rows:
        factories.counted(slo, [(last - ago, total, total) for ago, total in rows])

    browser = browser_as("viewer")

    for path in ("/slos/", "/slos/core-availability/"):
        assert reason in text(page(browser.get(path)))


def test_source_that_cannot_be_read_is_marked():
    slo = factories.slo()
    Sli.objects.filter(slo=slo).update(source_error="connection refused")

    assert "source can't be read" in text(get_page())


def test_pages_go_on(monkeypatch):
    monkeypatch.setattr("slo.dashboard.board.PAGE_SIZE", 2)
    for name in ("a", "b", "c"):
        create_status(factories.slo(name))

    browser = browser_as("viewer")

    assert switches_shown(page(browser.get("/slos/"))) == ["a", "b"]
    assert switches_shown(page(browser.get("/slos/?page=2"))) == ["c"]


def test_costs_as_many_queries_for_many_as_for_one(django_assert_max_num_queries):
    last = last_ended(db_now())
    browser = browser_as("viewer")
    for place in range(12):
        slo = factories.slo(f"slo-{place}")
        sli = Sli.objects.get(slo=slo)
        CounterMinute.objects.create(sli=sli, minute=last - 5, good=1, total=1, covered=0)
        Sli.objects.filter(pk=sli.pk).update(first=last - 5, last=last - 5)
        create_status(slo)
    browser.get("/slos/")

    with django_assert_max_num_queries(24):
        browser.get("/slos/")


def test_part_is_the_live_part_alone():
    html = page(browser_as("viewer").get("/slos/", headers=PART))

    assert html.startswith('<div id="live"')
    assert 'hx-swap-oob="merge"' in html


def test_navigation_counts_open_alerts_beside_their_page():
    slo = factories.slo()
    now = db_now()
    alert(slo, now, None)
    alert(slo, now, None, rule="6h/30m>6 ticket", severity="warning", acknowledged_at=now)
    alert(slo, now - timedelta(hours=3), 10)

    html = get_page()

    assert "Alerts 2 open SLOs" in text(html)
    assert Tags(html).having("a", href="/slos/", aria_current="page")
