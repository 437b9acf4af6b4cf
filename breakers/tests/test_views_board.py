"""Tests of the board of breakers: order, filters and rows."""

from datetime import timedelta

import pytest

from breakers.models import Dependency
from breakers.tests.house import dependency, discovered, forced, minute, reports
from controlplane.core.clock import db_now
from controlplane.core.configuration.models import SampleEntry
from switches.tests.browsers import PART, Tags, browser_as, page, switches_shown, text

pytestmark = pytest.mark.django_db


def test_nothing_registered_says_how_to_begin():
    html = page(browser_as("viewer").get("/breakers/"))

    assert "config load" in html


def test_rows_come_the_most_urgent_first_and_critical_before_low():
    now = db_now()
    reports(dependency("core->calm", now, criticality="critical"), now)
    reports(dependency("core->minor", now, criticality="low"), now, "open")
    reports(dependency("core->grave", now, criticality="critical"), now, "open")
    reports(dependency("core->probing", now), now, "half_open")
    overridden = dependency("core->forced", now)
    reports(overridden, now)
    forced(overridden, now, "forced_closed")

    html = page(browser_as("viewer").get("/breakers/"))

    assert switches_shown(html) == [
        "core → forced",
        "core → grave",
        "core → minor",
        "core → probing",
        "core → calm",
    ]
    assert "2 open" in text(html)
    assert "1 of the open breakers is on a critical or high dependency" in text(html)


def test_state_by_stale_word_alone_is_marked():
    now = db_now()
    stale = dependency("core->oracle", now)
    reports(stale, now - timedelta(seconds=90), "open")

    html = page(browser_as("viewer").get("/breakers/"))

    assert "breakers__stale" in html
    assert "1 stale" in text(html)


def test_instance_that_is_gone_reports_nothing():
    now = db_now()
    reports(dependency("core->oracle", now), now - timedelta(minutes=6), "open")

    html = page(browser_as("viewer").get("/breakers/"))

    assert "Not reported" in text(html)
    assert "0 open" not in text(html)


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("state=open", ["core → oracle"]),
        ("state=closed", ["core → vision"]),
        ("state=unknown", ["worker → synapse"]),
        ("state=overridden", ["core → vision"]),
        ("criticality=high", ["core → oracle"]),
        ("caller=worker", ["worker → synapse"]),
        ("q=Core+→+or", ["core → oracle"]),
        ("q=team-olap", ["core → vision"]),
        ("state=nonsense&criticality=odd", ["core → vision", "core → oracle"]),
        ("q=zzz", []),
        ("page=2", []),
    ],
)
def test_filter_narrows_to_what_it_names(query, shown):
    now = db_now()
    reports(dependency("core->oracle", now, criticality="high"), now, "open")
    vision = dependency("core->vision", now, owner="Team-OLAP")
    reports(vision, now)
    forced(vision, now, "disabled")
    discovered("worker->synapse", now)

    html = page(browser_as("viewer").get(f"/breakers/?{query}"))

    assert switches_shown(html) == shown


def test_silent_ones_are_counted_below_and_listed_by_their_filter():
    now = db_now()
    reports(dependency("core->oracle", now), now)
    dependency("core->silent", now)
    forced(dependency("core->forced", now), now)

    viewer = browser_as("viewer")
    html = page(viewer.get("/breakers/"))

    assert switches_shown(html) == ["core → forced", "core → oracle"]
    assert (
        "2 dependencies have had no report in the last 5 minutes, or their instances stopped"
        in text(html)
    )
    silent = page(viewer.get("/breakers/?state=unknown"))
    assert switches_shown(silent) == ["core → forced", "core → silent"]


def test_closed_breaker_whose_calls_fail_comes_before_healthy_ones():
    now = db_now()
    for name in ("core->calm", "core->zebra"):
        reports(dependency(name, now, criticality="low"), now)
    failing = dependency("core->vision", now, criticality="low")
    reports(failing, now)
    minute(failing, now, 1, success=60, failure=20, rejected=20)

    viewer = browser_as("viewer")
    html = page(viewer.get("/breakers/"))

    assert switches_shown(html) == ["core → vision", "core → calm", "core → zebra"]
    assert "Closed, failing" in text(html)
    assert "20 % failed, 20 % rejected in 5 min" in text(html)
    only = page(viewer.get("/breakers/?state=failing"))
    assert switches_shown(only) == ["core → vision"]


def test_unregistered_one_says_so():
    discovered("core->mailer", db_now())

    assert "not registered" in text(page(browser_as("viewer").get("/breakers/")))


def test_spark_tells_the_worst_of_the_hour_in_words():
    now = db_now()
    row = dependency("core->oracle", now)
    minute(row, now, 5, success=50, failure=50, worst=3)
    minute(row, now, 90, success=0, failure=9, worst=3)

    html = page(browser_as("viewer").get("/breakers/"))

    (spark,) = Tags(html).having("svg", class_="spark")
    assert spark["aria-label"] == "Failures over the last hour: at most 50 %; open for 1 min"


def test_viewer_sees_all_and_is_offered_nothing():
    now = db_now()
    reports(dependency("core->oracle", now), now, "open")

    assert "/override/" not in page(browser_as("viewer").get("/breakers/"))
    assert "/breakers/core/oracle/override/" in page(browser_as("operator").get("/breakers/"))


def test_live_part_comes_alone_with_the_time():
    response = browser_as("viewer").get("/breakers/", headers=PART)

    assert "<html" not in page(response)
    assert page(response).lstrip().startswith('<div id="live"')
    assert response["Switchgear-Now"]


def test_stranger_is_sent_to_sign_in(client):
    assert client.get("/breakers/").status_code == 302


def test_second_page_goes_on_where_the_first_ends():
    now = db_now()
    for number in range(51):
        discovered(f"core->s{number:02}", now)
    browser = browser_as("viewer")

    first, second = (switches_shown(page(browser.get(f"/breakers/?page={n}"))) for n in (1, 2))

    assert (len(first), second) == (50, ["core → s50"])


def headline(html):
    return text(html.split("<h1", 1)[1].partition(">")[2].partition("</h1>")[0]).strip()


def test_what_nobody_reports_is_counted_beside_what_is_closed_and_is_not_calm():
    now = db_now()
    reports(dependency("core->calm", now, criticality="low"), now)
    dependency("core->silent", now, criticality="critical")
    dependency("core->quiet", now)

    html = page(browser_as("viewer").get("/breakers/"))

    assert "1 of 3 reporting, none open" in headline(html)
    assert "2 not reporting" in headline(html)
    assert "1 critical not reporting" in text(html)
    assert "headline--calm" not in html


def loaded_as_sample(name, now, **fields):
    row = dependency(name, now, **fields)
    SampleEntry.objects.create(kind="dependency", name=name, loaded_at=row.changed_at)
    return row


@pytest.mark.parametrize("known", [["core->known"], []])
def test_samples_that_were_never_reported_are_listed_by_their_filter_only(known):
    now = db_now()
    loaded_as_sample("core->oracle", now)
    loaded_as_sample("core->store", now)
    for name in known:
        dependency(name, now)

    viewer = browser_as("viewer")
    html = page(viewer.get("/breakers/"))

    assert switches_shown(html) == ["core → known" for _ in known]
    assert "2 samples were never reported. Show them" in text(html)
    listed = switches_shown(page(viewer.get("/breakers/?state=unknown")))
    assert {"core → oracle", "core → store"} <= set(listed)


def test_samples_that_were_never_reported_are_no_warning():
    now = db_now()
    loaded_as_sample("core->oracle", now, criticality="critical")
    loaded_as_sample("core->store", now)

    html = page(browser_as("viewer").get("/breakers/"))

    assert headline(html) == "No breakers reporting"
    assert "headline__warn" not in html
    assert "2 dependencies, 2 unused samples." in text(html)


def test_sample_that_is_reported_no_more_is_counted_like_any_dependency():
    now = db_now()
    used = loaded_as_sample("core->oracle", now, criticality="critical")
    reports(used, now - timedelta(hours=1))
    changed = loaded_as_sample("core->store", now)
    Dependency.objects.filter(pk=changed.pk).update(changed_at=now + timedelta(seconds=1))

    html = page(browser_as("viewer").get("/breakers/"))

    assert "2 not reporting" in headline(html)
    assert "1 critical not reporting" in text(html)


def test_unused_samples_do_not_make_a_calm_board_restless():
    now = db_now()
    reports(dependency("core->calm", now), now)
    loaded_as_sample("core->oracle", now, criticality="critical")

    html = page(browser_as("viewer").get("/breakers/"))

    assert headline(html) == "All breakers closed"
    assert "headline--calm" in html
    assert "2 dependencies, 1 unused sample." in text(html)


def test_what_was_last_heard_of_a_while_ago_is_no_good_news():
    now = db_now()
    stale = dependency("core->oracle", now, criticality="critical")
    reports(stale, now - timedelta(seconds=90))

    html = page(browser_as("viewer").get("/breakers/"))

    assert "1 not reporting" in headline(html)
    assert "headline--calm" not in html


def test_headline_is_calm_where_every_breaker_is_known_to_be_closed():
    now = db_now()
    reports(dependency("core->calm", now), now)

    html = page(browser_as("viewer").get("/breakers/"))

    assert "All breakers closed" in headline(html)
    assert "headline--calm" in html


def test_failures_are_those_of_five_minutes_and_else_of_the_last_hour():
    now = db_now()
    oracle = dependency("core->oracle", now)
    reports(oracle, now, "open")
    minute(oracle, now, 40, success=90, failure=10)
    viewer = browser_as("viewer")

    earlier = text(page(viewer.get("/breakers/")))
    minute(oracle, now, 0, failure=10)
    later = text(page(viewer.get("/breakers/")))

    assert "10 % failed in 1 h, no calls since" in earlier
    assert "100 % failed in 5 min" in later


@pytest.mark.parametrize(
    ("ago", "shown"),
    [
        pytest.param(51, "25 % failed in 1 h, no calls since", id="its window stands still"),
        pytest.param(None, "no calls reported in 1 h", id="no calls for an hour"),
    ],
)
def test_failures_without_calls_are_not_of_now(ago, shown):
    now = db_now()
    oracle = dependency("core->oracle", now)
    reports(oracle, now, failure_rate=0.25)
    if ago is not None:
        minute(oracle, now, ago, success=30, failure=10)

    page_text = text(page(browser_as("viewer").get("/breakers/")))

    assert shown in page_text
    assert "25 % now" not in page_text


def test_switchboard_lists_forced_breakers_with_their_removal():
    now = db_now()
    forced(dependency("core->synapse", now), now, "forced_open")
    forced(dependency("core->oracle", now), now, "reset")

    seen = page(browser_as("viewer").get("/"))
    offered = page(browser_as("operator").get("/"))

    assert "1 breaker is forced core → synapse forced open by" in text(seen)
    assert "override/remove/" not in seen
    assert 'href="/breakers/core/synapse/override/remove/"' in offered


def test_long_lists_of_forced_breakers_are_cut():
    now = db_now()
    for n in range(7):
        forced(dependency(f"core->s{n}", now), now, "disabled")

    content = text(page(browser_as("viewer").get("/")))

    assert "7 breakers are forced" in content
    assert "2 more" in content
