"""The switchboard's filter of the viewer's own switches, and its mark of break-glass."""

import pytest

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person, signed_in, with_token
from switches import services
from switches.models import Episode
from switches.tests.browsers import REASON, browser, browser_as, engaged, page, released, text
from switches.tests.instances import report_checks

pytestmark = pytest.mark.django_db

MARK = "Break-glass used"


def test_filter_lists_only_switches_that_the_viewer_engaged():
    kim = engaged("segment:finance")
    engaged("segment:legal", by=person("operator", "olu"))

    html = page(browser(kim).get("/?mine=1"))

    assert "row-segment-finance" in html
    assert "row-segment-legal" not in html


def test_released_switches_stay_the_viewers_own():
    kim = engaged("segment:finance")
    released("segment:finance")

    assert "row-segment-finance" in page(browser(kim).get("/?mine=1"))


@pytest.mark.parametrize("way", ["slack", "token"])
def test_engagements_by_slack_and_by_token_are_the_viewers_own(way):
    kim = person("operator", "kim")
    if way == "slack":
        services.engage(
            scope="segment",
            key="finance",
            reason=REASON,
            expires_in="24h",
            actor=kim.as_actor(kind="slack"),
            now=db_now(),
        )
    else:
        with_token("switches:write", owner=kim).engage("segment:finance")

    assert "row-segment-finance" in page(browser(kim).get("/?mine=1"))
    assert "row-segment-finance" not in page(browser_as("viewer").get("/?mine=1"))


def test_switches_whose_registration_the_viewer_changed_are_their_own():
    kim = person("operator", "kim")
    for key, user in (("finance", kim), ("legal", person("operator", "olu"))):
        signed_in(user).patch(f"/switches/segment/{key}/", {"owner": "payments"})

    html = page(browser(kim).get("/?mine=1"))

    assert "row-segment-finance" in html
    assert "row-segment-legal" not in html


def test_filter_leaves_out_checked_switches_that_nobody_engaged():
    kim = engaged("segment:finance")
    report_checks("core/1", "feature:chat", at=db_now(), per_second=5)

    assert "checked-feature-chat" in page(browser(kim).get("/"))
    assert "checked-feature-chat" not in page(browser(kim).get("/?mine=1"))


def test_viewer_who_engaged_nothing_is_told_so():
    engaged("segment:finance")

    html = text(page(browser_as("viewer").get("/?mine=1")))

    assert "You have not engaged or changed a switch that matches the filters." in html


@pytest.mark.parametrize(("broke_glass", "marked"), [({"rule": "one of two"}, True), (None, False)])
def test_rows_are_marked_if_the_episode_used_break_glass(broke_glass, marked):
    engaged("segment:finance")
    Episode.objects.update(broke_glass=broke_glass)

    assert (MARK in text(page(browser_as("viewer").get("/")))) is marked
