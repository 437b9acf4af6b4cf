"""The page *Fleet*: order, filters, and last known figures of what is silent."""

import re
from html import unescape

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane import __version__
from controlplane.core.clock import db_now
from controlplane.core.fleet.tests.rows import create_process, publish
from controlplane.core.http.tests.callers import browser_of, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser():
    return browser_of(person("viewer"))


@pytest.fixture
def now():
    now = db_now()
    publish(now)
    return now


def show_page(browser, path="/fleet/", **query):
    """Return the HTML of the page's live part."""
    response = browser.get(path, query)
    assert response.status_code == 200
    html = response.content.decode()
    return html[html.index('<div id="live"') : html.rindex("</section>")]


def words(html):
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def list_names(html):
    return re.findall(r'<tr id="fleet-([^"]+)"', html)


def find_row(html, name):
    return re.search(
        rf'<tr id="fleet-{name}".*?</tr>(?=\s*(<tr id="fleet|</tbody))', html, re.DOTALL
    )[0]


def read_heading(html):
    return words(re.search(r"<h1.*?</h1>", html, re.DOTALL)[0])


def test_empty_fleet_says_how_to_start_one(browser, now):
    page = show_page(browser)

    assert "manage.py serve dataplane" in words(page)
    assert "<form" not in page


def test_row_has_what_the_member_last_reported(browser, now):
    create_process("dp-1", now, release=__version__)
    create_process("eu-1", now, upstream="dp-1", release=__version__)

    page = show_page(browser)

    assert "All up to date" in read_heading(page)
    text = words(find_row(page, "eu-1"))
    for part in ("relay", "Up to date", "dp-1", "120", "0.4 s", "30", "12", "ago"):
        assert part in text
    assert "console" not in text
    assert 'href="#fleet-dp-1"' in find_row(page, "eu-1")
    assert "1 data plane and 1 relay; 24 instances heard" in words(page)


def test_silent_and_lagging_members_come_first_with_what_to_do(browser, now):
    create_process("dp-1", now)
    create_process("eu-1", now, upstream="dp-1", age_seconds=42.0)
    create_process("us-1", now, upstream="dp-1", silent_for=90, version=118)

    page = show_page(browser)

    assert list_names(page) == ["us-1", "eu-1", "dp-1"]
    assert read_heading(page) == "1 silent 1 lagging 1 of 3 up to date"
    assert "42 s old" in words(find_row(page, "eu-1"))
    assert "Check that it runs and reaches dp-1." in words(find_row(page, "us-1"))


def test_figures_of_a_silent_member_are_called_last_known(browser, now):
    create_process("dp-1", now, silent_for=90)

    row = find_row(show_page(browser), "dp-1")
    found = re.findall(r'<td data-label="([^"]+)"([^>]*>.*?)</td>', row, re.DOTALL)
    cells = {label: words(f"<td {cell}") for label, cell in found}

    for label in ("Version", "Connections", "Instances"):
        assert cells[label].endswith("last known"), label
    assert cells["Age"] == "unknown"


def test_other_version_and_release_are_compared_with_the_consoles(browser, now):
    publish(now, seconds_ago=3, version=121)
    create_process("dp-1", now, release="0.0.1", version=1119)

    text = words(find_row(show_page(browser), "dp-1"))

    assert "1,119 console: 121" in text
    assert f"0.0.1 console: {__version__}" in text


def test_process_that_stopped_cleanly_is_left_out(browser, now):
    create_process("dp-1", now)
    create_process("dp-2", now, silent_for=90, is_stopped=True)

    assert list_names(show_page(browser)) == ["dp-1"]


def test_filters_leave_out_what_doesnt_match(browser, now):
    create_process("dp-1", now)
    create_process("eu-1", now, upstream="dp-2", silent_for=90)

    assert list_names(show_page(browser, state="impaired")) == ["eu-1"]
    assert list_names(show_page(browser, q="DP-2")) == ["eu-1"]
    assert list_names(show_page(browser, q="relay 1")) == ["eu-1"]
    assert "No matches" in words(show_page(browser, q="nothing"))


def test_refresh_keeps_filters_and_page(browser, now):
    for n in range(101):
        create_process(f"dp-{n:03}", now)

    page = show_page(browser, page=2, q="dp")

    assert list_names(page) == ["dp-100"]
    assert 'hx-get="/fleet/rows/?q=dp&amp;page=2"' in page
    rows = show_page(browser, "/fleet/rows/", page=2, q="dp")
    assert list_names(rows) == ["dp-100"]


def test_number_of_queries_doesnt_grow_with_the_fleet(browser, now):
    create_process("dp-1", now)
    browser.get("/fleet/rows/")  # Fills caches.
    with CaptureQueriesContext(connection) as few:
        browser.get("/fleet/rows/")
    for n in range(20):
        create_process(f"eu-{n}", now, upstream="dp-1", silent_for=n * 5)

    with CaptureQueriesContext(connection) as many:
        browser.get("/fleet/rows/")

    assert len(many) <= len(few)
