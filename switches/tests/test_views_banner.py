"""The banner of every page: global stop, overdue switches, unknown state."""

import re

import pytest
from django.db import OperationalError, connection
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext

from controlplane.core.actors import Actor
from controlplane.core.http.tests.callers import person
from switches.models import Episode
from switches.rules import break_glass
from switches.status_summary import banner
from switches.tests.browsers import REASON, browser_as, engaged, overdue, page

RELEASER = Actor(type="user", name="ana")
pytestmark = pytest.mark.django_db
PAGES = (
    "/",
    "/switches/feature/calm/",
    "/approvals/",
    "/audit/",
    "/preferences/",
    "/switches/engage/",
    "/admin/",
    "/admin/switches/switch/",
)


@pytest.mark.parametrize("path", PAGES)
def test_engaged_global_switch_stands_above_every_page(path):
    client = browser_as("admin")
    assert "Global stop engaged" not in page(client.get(path))

    engaged("global:all")

    html = page(client.get(path))
    assert "Global stop engaged" in html
    assert REASON in html
    assert "/switches/global/all/" in html


def test_ramping_global_switch_says_how_much_flows():
    engaged("global:all")
    Episode.objects.update(allow_percent=25)

    assert "25 % of all traffic allowed" in page(browser_as("viewer").get("/audit/"))


@pytest.mark.parametrize("path", PAGES)
def test_overdue_switches_stand_above_every_page(path):
    overdue()

    html = page(browser_as("admin").get(path))

    assert "1 overdue" in html
    assert "/?state=overdue" in html


def test_signed_out_page_tells_nothing(client):
    engaged("global:all")

    assert "Global stop engaged" not in page(client.get("/sign-in/"))


def test_pages_that_are_not_live_ask_for_it_by_themselves():
    engaged("global:all")
    client = browser_as("viewer")

    assert 'hx-get="/alarm/"' in page(client.get("/audit/"))
    part = page(client.get("/alarm/", headers={"HX-Request": "true", "HX-Target": "alarm"}))
    assert "Global stop engaged" in part
    assert "<html" not in part


def test_refreshed_navigation_marks_the_page_that_is_shown():
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver/audit/?q=kim"}

    part = page(browser_as("viewer").get("/alarm/", headers=headers))

    assert part.count("aria-current") == 1
    assert 'href="/audit/" aria-current="page"' in part


def test_costs_one_query():
    request = RequestFactory().get("/")
    request.user = person("viewer")
    engaged("global:all")
    overdue()

    with CaptureQueriesContext(connection) as caught:
        standing = banner(request)["standing"]
        summary = (standing.engaged, standing.overdue, standing.everything.reason)

    assert summary == (2, 1, REASON)
    assert len(caught) == 1


def test_costs_nothing_where_nobody_looks():
    with CaptureQueriesContext(connection) as caught:
        banner(RequestFactory().get("/"))

    assert not caught.captured_queries


def test_database_that_is_away_breaks_no_page_and_is_not_taken_for_calm():
    request = RequestFactory().get("/")
    request.user = person("viewer")

    def away(*_args):
        raise OperationalError("server closed the connection unexpectedly")

    with connection.execute_wrapper(away):
        standing = banner(request)["standing"]

        assert not standing.known
        assert standing.everything is None


def test_glass_broken_by_a_release_is_told_as_a_release_and_by_whom():
    engaged("segment:finance")
    record = break_glass.override_record(
        "The fix is proven on two machines", ["two-person"], "release", RELEASER
    )
    Episode.objects.update(broke_glass={"release": record})

    html = page(browser_as("viewer").get("/audit/"))

    text = " ".join(re.sub(r"<[^>]+>", "", html).split())
    assert (
        "segment:finance released by ana, overriding the rule “two-person”: The fix is proven"
        in text
    )
