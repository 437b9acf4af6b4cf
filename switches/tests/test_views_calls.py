"""Calls of a switch on its page, on the switchboard and in the API."""

import re
from datetime import datetime, timedelta

import pytest

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from controlplane.core.instances.check_series import counted_until
from controlplane.core.models import CheckCount
from switches.board import SwitchboardFilters, load_switchboard
from switches.call_plot import load_call_plot
from switches.ramps import actions
from switches.tests.browsers import PART, browser, browser_as, engaged, page, released, text
from switches.tests.instances import report_checks
from switches.tests.ramps import QUICK, run_workers, start_ramp

pytestmark = pytest.mark.django_db
FINANCE = "segment:finance"
URL = "/switches/segment/finance/"
API = "/api/v1/switches/segment/finance/calls"


def counted(now: datetime, *counts: tuple[int, int], switch: str = FINANCE) -> int:
    """Store (allowed, blocked) by the minute, the last one ending with the series, and the hours.

    Return the end of the series in Unix seconds.
    """
    last = counted_until(now)
    for back, (allowed, blocked) in enumerate(reversed(counts), 1):
        row = {"switch": switch, "allowed": allowed, "blocked": blocked}
        start = last - 60 * back
        CheckCount.objects.create(seconds=60, start=start, **row)
        hour, _ = CheckCount.objects.get_or_create(
            switch=switch, seconds=3600, start=start - start % 3600
        )
        hour.allowed += allowed
        hour.blocked += blocked
        hour.save()
    return last


@pytest.mark.parametrize("range_name", ["1h", "6h", "24h", "7d", "90d"])
def test_every_range_counts_the_same_calls(range_name):
    now = db_now()
    counted(now, (40, 0), (10, 30), (0, 50))
    counted(now, (1000, 1000), switch="feature:other")

    plot = load_call_plot(FINANCE, range_name, now)

    assert (plot.series.allowed, plot.series.blocked) == (50, 80)
    assert plot.has_gaps


def test_page_shows_calls_and_the_changes_among_them():
    now = db_now()
    counted(now, (40, 0), (10, 30), (0, 50))
    engaged(FINANCE, now=now - timedelta(minutes=3))
    released(FINANCE)

    html = page(browser_as("viewer").get(f"{URL}?calls=1h"))
    seen = text(html)

    assert "Blocked 80 (62 %)" in seen
    assert "Allowed 50" in seen
    assert re.search(
        r"Complete minutes until \d\d:\d\d; the last change, at [\d:]+, is not in it yet", seen
    )
    assert "Engaged by user kim" in seen
    assert "Released by system shell" in seen
    assert 'aria-label="Calls of segment:finance, last 1 h: 80 of 130 calls blocked"' in html
    assert "style=" not in html[html.index('id="calls"') : html.index('id="calls-table"')]


def test_no_share_is_claimed_for_a_span_that_ends_before_the_change():
    now = db_now()
    counted(now, (40, 0))
    client = browser_as("viewer")
    before = text(page(client.get(f"{URL}?calls=1h")))
    engaged(FINANCE, now=now)

    seen = text(page(client.get(f"{URL}?calls=1h")))

    assert "Blocked 0 (0 %)" in before
    assert "is not in it yet" not in before
    assert "(0 %)" not in seen
    assert "is not in it yet" in seen


def test_ramp_steps_are_marks():
    start_ramp(FINANCE, plan=QUICK)
    run_workers(1)
    run_workers(70)
    now = db_now() + timedelta(minutes=5)

    names = [mark.name for mark in load_call_plot(FINANCE, "1h", now).marks]

    assert [name for name in names if name.startswith("Ramp")][:1] == ["Ramp step 1: 5 % allowed"]


def test_nothing_reported_is_said_and_not_drawn():
    seen = text(page(browser_as("viewer").get(f"{URL}calls/", headers=PART)))

    assert re.search(
        r"No calls in the complete minutes of this range, until \d\d:\d\d\. Each minute", seen
    )
    assert "Calls as a table" not in seen


def test_switchboard_has_a_sparkline_for_each_row_in_one_query(django_assert_max_num_queries):
    now = db_now()
    user = person("viewer")
    engaged(FINANCE, now=now - timedelta(minutes=3))
    counted(now, (40, 0), (0, 30))
    for number in range(20):
        engaged(f"feature:f{number}")
        counted(now, (0, 5), switch=f"feature:f{number}")
    # One each for the ranking of keys, stopped switches, released ones, ramps, registered keys,
    # sparklines and checks.
    with django_assert_max_num_queries(7):
        rows = load_switchboard(SwitchboardFilters(), user, now).rows

    assert {row.switch.pk: row.calls.blocked for row in rows}[FINANCE] == 30
    html = page(browser(user).get("/"))
    assert html.count('<svg class="call-spark') == 21


@pytest.mark.parametrize(("minutes", "is_gray"), [(0, False), (5, True)])
def test_sparkline_is_gray_if_the_last_report_is_old(minutes, is_gray):
    now = db_now()
    engaged(FINANCE)
    counted(now, (0, 30), (0, 30))
    report_checks("core/1", FINANCE, at=now - timedelta(minutes=minutes), per_second=5)

    html = page(browser_as("viewer").get("/"))

    assert ("call-spark--stale" in html) is is_gray
    assert ("Last checked by core 5 min ago" in text(html)) is is_gray


def test_api_lists_spans_newest_first_by_page():
    now = db_now()
    last = counted(now, (40, 0), (10, 30), (0, 50))
    client = browser_as("viewer")

    first = client.get(f"{API}?limit=2").json()
    rest = client.get(first["next"]).json()
    hours = client.get(f"{API}?by=hour").json()["results"]

    assert [(row["allowed"], row["blocked"]) for row in first["results"]] == [(0, 50), (10, 30)]
    assert [(row["allowed"], row["blocked"]) for row in rest["results"]] == [(40, 0)]
    start = datetime.fromisoformat(first["results"][0]["start"])
    assert (start.timestamp(), first["results"][0]["seconds"]) == (last - 60, 60)
    assert sum(row["blocked"] for row in hours) == 80


def test_api_filters_by_time_and_refuses_unknown_spans():
    now = db_now()
    last = counted(now, (40, 0), (10, 30), (0, 50))
    client = browser_as("viewer")
    since = datetime.fromtimestamp(last - 120, now.tzinfo).strftime("%Y-%m-%dT%H:%M:%SZ")

    assert len(client.get(f"{API}?since={since}").json()["results"]) == 2
    assert len(client.get(f"{API}?until={since}").json()["results"]) == 1
    assert client.get(f"{API}?by=second").status_code == 400


def test_ramp_that_was_aborted_is_marked_as_engaged_again():
    ramp = start_ramp(FINANCE, plan=QUICK)
    run_workers(1)
    lee = person("operator", "lee").as_actor()
    actions.abort(ramp_id=ramp.pk, reason="errors again, INC-4411", actor=lee, now=db_now())

    marks = load_call_plot(FINANCE, "1h", db_now() + timedelta(minutes=1)).marks

    assert [mark.name for mark in marks][-1] == "Ramp ended: engaged again"
    assert marks[-1].kind == "engaged"
