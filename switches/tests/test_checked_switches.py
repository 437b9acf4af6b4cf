"""Switches that services check are found, though nobody ever registered or engaged them."""

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from controlplane.core.clock import db_now
from controlplane.core.instances import rates
from controlplane.core.models import CheckCount, Instance
from switches.models import Switch
from switches.tests.browsers import (
    browser_as,
    engaged,
    page,
    released,
    switches_shown,
    text,
)
from switches.tests.instances import report_checks

pytestmark = pytest.mark.django_db


def checked(switch: str, per_second: int, now: datetime, service: str = "core") -> None:
    report_checks(f"{service}/{switch}", switch, at=now, per_second=per_second)


def read_section(html: str) -> str:
    return text(html.partition('id="unregistered-title"')[2].partition("</section>")[0])


def find_text(browser: Client, query: str) -> str:
    return text(page(browser.get("/find/part/", {"q": query})))


def test_switchboard_lists_them_busiest_first_beside_engaged_ones():
    now = db_now()
    engaged("segment:finance")
    for switch, calls in (("segment:finance", 9), ("segment:legal", 5), ("feature:chat", 50)):
        checked(switch, calls, now)

    section = read_section(page(browser_as("viewer").get("/")))

    assert section.index("feature:chat") < section.index("segment:legal")
    assert "segment:finance" not in section


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("q=LEG", ["segment:legal"]),
        ("q=legal+SEG", ["segment:legal"]),
        ("scope=feature", ["feature:chat"]),
        ("state=released", ["feature:chat", "segment:legal"]),
        ("state=engaged", []),
    ],
)
def test_filters_apply_to_them(query, shown):
    now = db_now()
    checked("segment:legal", 5, now)
    checked("feature:chat", 50, now)

    section = read_section(page(browser_as("viewer").get(f"/?{query}")))

    assert [name for name in ("feature:chat", "segment:legal") if name in section] == shown


def test_released_switches_are_listed_busiest_first_and_unchecked_ones_are_marked():
    now = db_now()
    for key in ("calm", "idle", "busy"):
        engaged(f"feature:{key}")
        released(f"feature:{key}")
    checked("feature:busy", 12, now)
    checked("feature:busy", 3, now, "billing")
    checked("feature:calm", 2, now)

    html = page(browser_as("viewer").get("/"))

    assert switches_shown(html) == ["feature:busy", "feature:calm", "feature:idle"]
    rows = text(html).partition("feature:busy")[2]
    busy, _, rest = rows.partition("feature:calm")
    calm, _, idle = rest.partition("feature:idle")
    assert "15/s by core and 1 more" in busy
    assert "2.0/s by core" in calm
    assert "No checks reported in the last hour" in idle


def test_check_of_more_than_an_hour_ago_is_dated_and_counts_no_more():
    now = db_now()
    engaged("feature:known")
    released("feature:known")
    for switch in ("feature:known", "feature:never-engaged"):
        report_checks(f"core/{switch}", switch, at=now - timedelta(minutes=61), per_second=5)

    viewer = browser_as("viewer")
    html = text(page(viewer.get("/")))

    assert "No checks reported since" in html
    assert "feature:never-engaged" not in html
    assert "feature:never-engaged" not in find_text(viewer, "never-engaged")


def test_check_of_some_minutes_ago_is_no_rate_of_now():
    now = db_now()
    report_checks("core/1", "feature:mail", at=now - timedelta(minutes=5), per_second=5)

    viewer = browser_as("viewer")

    assert "Last checked by core 5 min ago" in read_section(page(viewer.get("/")))
    assert "last checked by core 5 min ago" in find_text(viewer, "mail")


def test_empty_board_does_not_claim_that_there_are_no_switches():
    checked("segment:legal", 5, db_now())

    html = text(page(browser_as("viewer").get("/")))

    assert "none has ever been engaged" in html
    assert "No switches yet" not in html


def test_board_without_switches_and_checks_says_so():
    assert "No switches yet, and no checks reported." in text(page(browser_as("viewer").get("/")))


def test_palette_finds_them_and_completes_an_engagement():
    checked("segment:legal", 5, db_now())

    operator = browser_as("operator")

    assert "segment:legal" in find_text(browser_as("viewer"), "legal")
    assert "Engage segment:legal…" in find_text(operator, "engage leg")
    assert "no checks reported" not in find_text(operator, "engage leg")


def test_palette_marks_keys_that_no_service_checks():
    checked("segment:legal", 5, db_now())

    operator = browser_as("operator")

    assert "no checks reported" in find_text(operator, "segment:leg")
    assert "no checks reported" in find_text(operator, "engage legall")
    assert "no checks reported" not in find_text(operator, "segment:legal")


def test_palette_offers_to_release_and_extend_an_engaged_switch():
    engaged("feature:nl2sql")

    offered = find_text(browser_as("operator"), "nl2")

    assert "Release feature:nl2sql…" in offered
    assert "Extend feature:nl2sql…" in offered
    assert "Release" not in find_text(browser_as("viewer"), "nl2")


def test_number_of_queries_does_not_grow_with_the_keys(django_assert_max_num_queries):
    now = db_now()
    start = int(now.timestamp()) // 3600 * 3600
    keys = [f"feature:f{n}" for n in range(1, 2000)]
    CheckCount.objects.bulk_create(
        CheckCount(switch=key, seconds=3600, start=start, allowed=n) for n, key in enumerate(keys)
    )
    entry = rates.add_calls(None, 1, 0, now)
    Instance.objects.create(id="core/1", service="core", checks=dict.fromkeys(keys, entry))
    browser = browser_as("viewer")
    browser.get("/")

    with django_assert_max_num_queries(30):
        html = page(browser.get("/"))

    assert "feature:f1999" in read_section(html)
    assert html.count('id="checked-feature-') == 20
    assert Switch.objects.count() == 0


def test_palette_asks_as_often_for_six_results_as_for_one():
    engaged("feature:one")
    operator = browser_as("operator")
    find_text(operator, "one")
    with CaptureQueriesContext(connection) as for_one:
        find_text(operator, "feature:o")
    for number in range(5):
        engaged(f"feature:o{number}")

    with CaptureQueriesContext(connection) as for_six:
        find_text(operator, "feature:o")

    assert len(for_six) == len(for_one)
