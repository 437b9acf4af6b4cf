"""Refreshes of a page that has not changed since."""

from datetime import timedelta

import pytest

from breakers.tests.house import dependency, minute, reports
from controlplane.core.clock import db_now
from controlplane.core.page_responses import DIGEST_HEADER
from switches.tests.browsers import PART, browser_as

pytestmark = pytest.mark.django_db
PAGES = ["", "map/", "fallbacks/", "infrastructure/", "core/oracle/"]


def refresh(browser, path, shown=None):
    digest = {DIGEST_HEADER: shown[DIGEST_HEADER]} if shown else {}
    return browser.get(f"/breakers/{path}", headers={**PART, **digest})


@pytest.mark.parametrize("path", PAGES)
def test_unchanged_part_is_not_sent_again_but_its_time_is(path):
    now = db_now()
    reports(dependency("core->oracle", now), now - timedelta(seconds=2))
    browser = browser_as("operator")
    first = refresh(browser, path)

    second = refresh(browser, path, first)

    assert (first.status_code, second.status_code, second.content) == (200, 204, b"")
    assert second["Switchgear-Now"] > first["Switchgear-Now"]
    assert second[DIGEST_HEADER] == first[DIGEST_HEADER]


def test_changed_state_is_sent():
    now = db_now()
    oracle = dependency("core->oracle", now)
    reports(oracle, now)
    browser = browser_as("viewer")
    first = refresh(browser, "")

    reports(oracle, now, "open")
    second = refresh(browser, "", first)

    assert (second.status_code, b"1 open" in second.content) == (200, True)


def test_changed_share_of_failed_calls_is_sent():
    now = db_now()
    oracle = dependency("core->oracle", now)
    reports(oracle, now)
    browser = browser_as("viewer")
    first = refresh(browser, "")

    minute(oracle, now, 0, success=80, failure=20)

    assert refresh(browser, "", first).status_code == 200


def test_other_filter_is_sent():
    now = db_now()
    reports(dependency("core->oracle", now), now)
    browser = browser_as("viewer")
    first = refresh(browser, "")

    assert refresh(browser, "?state=open", first).status_code == 200


def test_whole_page_is_always_sent():
    browser = browser_as("viewer")
    first = refresh(browser, "")

    page = browser.get("/breakers/", headers={DIGEST_HEADER: first[DIGEST_HEADER]})

    assert page.status_code == 200
    assert DIGEST_HEADER not in page
