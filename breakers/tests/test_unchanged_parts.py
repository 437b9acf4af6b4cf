"""Refreshes of a page that has not changed since."""

import re
from datetime import timedelta
from uuid import uuid4

import pytest

from breakers.models import BreakerState, Dependency, Minute, Override, Transition
from breakers.tests.house import dependency, minute, reports
from controlplane.accounts.models.people import User
from controlplane.core.clock import db_now
from controlplane.core.configuration.models import SampleEntry
from controlplane.core.favorites.models import Favorite
from controlplane.core.instances.models import Instance
from controlplane.core.page_responses import DIGEST_HEADER
from switches.tests.browsers import PART, browser_as, engaged, within_a_minute

pytestmark = pytest.mark.django_db
PAGES = ["", "map/", "fallbacks/", "infrastructure/", "core/oracle/"]


def without_tokens(response):
    """Return a part without what differs between two equal ones: CSRF tokens and its time."""
    differing = r'value="\w{64}"|data-now="\d+"|data-as-of="\d+".*?</time>'
    return re.sub(differing, "", response.content.decode(), flags=re.DOTALL)


def refresh(browser, path, shown=None):
    digest = {DIGEST_HEADER: shown[DIGEST_HEADER]} if shown else {}
    return browser.get(f"/breakers/{path}", headers={**PART, **digest})


@pytest.mark.parametrize("path", PAGES)
def test_unchanged_part_is_not_sent_again_but_its_time_is(path):
    now = db_now()
    reports(dependency("core->oracle", now), now - timedelta(seconds=2))
    browser = browser_as("operator")

    def refresh_twice():
        first = refresh(browser, path)
        return first, refresh(browser, path, first)

    first, second = within_a_minute(refresh_twice)

    assert (first.status_code, second.status_code, second.content) == (200, 204, b"")
    assert second["Switchgear-Now"] > first["Switchgear-Now"]
    assert second[DIGEST_HEADER] == first[DIGEST_HEADER]


def change_row(**fields):
    Dependency.objects.update(**fields)


def force(now):
    Override.objects.create(
        dependency=Dependency.objects.get(),
        mode=Override.Mode.FORCED_OPEN,
        set_by_name="kim",
        set_at=now,
        expires_at=now + timedelta(hours=1),
        version=1,
    )


def change_state(now):
    Transition.objects.create(
        dependency=Dependency.objects.get(), boot=uuid4(), n=1, at=now, received_at=now
    )


def age_report(seconds):
    Instance.objects.update(reported_at=db_now() - timedelta(seconds=seconds))


def star(now):
    viewer = User.objects.get(role="viewer")
    Favorite.objects.create(user=viewer, kind="dependency", key="core->oracle", created_at=now)


def mark_as_sample(now):
    at = Dependency.objects.get().changed_at
    SampleEntry.objects.create(kind="dependency", name="core->oracle", loaded_at=at)


CHANGES = {
    "state": lambda now: BreakerState.objects.update(state="open"),
    "instances": lambda now: reports(Dependency.objects.get(), now, instance="a2"),
    "stale": lambda now: age_report(40),
    "gone": lambda now: age_report(400),
    "failing now": lambda now: minute(Dependency.objects.get(), now, 0, success=80, failure=20),
    "rejected": lambda now: minute(Dependency.objects.get(), now, 0, success=80, rejected=9),
    "failed before": lambda now: minute(Dependency.objects.get(), now, 50, failure=2),
    "open before": lambda now: minute(Dependency.objects.get(), now, 40, worst=3),
    "override": force,
    "transition": change_state,
    "owner": lambda now: change_row(owner="team-b"),
    "criticality": lambda now: change_row(criticality="critical"),
    "policy removed": lambda now: change_row(document={}),
    "dependency removed": lambda now: change_row(removed_at=now),
    "another dependency": lambda now: dependency("core->store", now),
    "favorite": star,
    "sample": mark_as_sample,
    "role": lambda now: User.objects.update(role="operator"),
    "navigation": lambda now: engaged("segment:finance"),
    "alarm bar": lambda now: engaged("global:all"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_change_of_the_board_is_sent(change):
    now = db_now()
    reports(dependency("core->oracle", now, owner="team-a", timeout_ms=1000), now)
    browser = browser_as("viewer")
    first = refresh(browser, "")

    change(now)
    second = refresh(browser, "", first)

    assert second.status_code == 200
    assert without_tokens(second) != without_tokens(first)


def test_calls_that_change_no_figure_are_not_sent():
    now = db_now()
    oracle = dependency("core->oracle", now)
    reports(oracle, now)
    calls = minute(oracle, now, 3, success=100)
    browser = browser_as("viewer")

    def refresh_after_report():
        first = refresh(browser, "")
        Minute.objects.filter(pk=calls.pk).update(success=130)
        reports(oracle, now + timedelta(seconds=2))
        return refresh(browser, "", first)

    assert within_a_minute(refresh_after_report).status_code == 204


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
