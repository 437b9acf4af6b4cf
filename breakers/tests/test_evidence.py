"""The order of dependencies on the board and the map."""

from datetime import timedelta

import pytest

from breakers.names import format_name
from breakers.states.evidence import rank_dependencies
from breakers.states.recent_calls import find_failing
from breakers.tests.house import dependency, forced, minute, reports
from controlplane.accounts.models.people import User
from controlplane.core.clock import db_now
from controlplane.core.favorites.models import Favorite
from switches.tests.browsers import browser_as, page, switches_shown

pytestmark = pytest.mark.django_db
BY_URGENCY = [
    "core->forced",
    "core->open",
    "core->half",
    "core->failing",
    "core->stale-open",
    "core->stale",
    "core->healthy",
    "core->unreported",
]


def an_incident(now):
    """Register one dependency of each kind, the least urgent one critical and all others low."""
    found = {
        name: dependency(name, now, criticality="low")
        for name in sorted(BY_URGENCY)
        if name != "core->unreported"
    }
    late = now - timedelta(seconds=90)
    found["core->unreported"] = dependency("core->unreported", now, criticality="critical")
    forced(found["core->forced"], now)
    reports(found["core->forced"], now)
    for instance, at, reported in (
        ("a1", now, {"open": "open", "half": "half_open"}),
        ("a1", now, {"failing": "closed", "healthy": "closed"}),
        ("b1", late, {"stale-open": "open", "stale": "closed"}),
    ):
        for callee, state in reported.items():
            reports(found[f"core->{callee}"], at, state, instance=instance)
    minute(found["core->failing"], now, 1, success=95, rejected=5)
    minute(found["core->healthy"], now, 1, success=96, failure=4)
    minute(found["core->open"], now, 1, success=50, failure=50)
    return found


def test_board_shows_favorites_first_of_the_same_evidence():
    now = db_now()
    for callee, state in (("a", "closed"), ("b", "closed"), ("c", "open"), ("d", "open")):
        reports(dependency(f"core->{callee}", now), now, state)
    browser = browser_as("viewer")
    viewer = User.objects.get(role="viewer")
    for callee in ("b", "d"):
        Favorite.objects.create(
            user=viewer, kind="dependency", key=f"core->{callee}", created_at=now
        )

    shown = switches_shown(page(browser.get("/breakers/")))

    assert shown == ["core → d", "core → c", "core → b", "core → a"]


def test_board_shows_forced_and_failing_ones_before_stale_and_healthy_ones():
    an_incident(db_now())
    viewer = browser_as("viewer")

    shown = switches_shown(page(viewer.get("/breakers/")))
    unreported = switches_shown(page(viewer.get("/breakers/?state=unknown")))

    assert [*shown, *unreported] == [format_name(name) for name in BY_URGENCY]
    assert len(unreported) == 1


def test_ranks_of_the_map_are_those_of_the_board():
    now = db_now()
    found = an_incident(now)

    ids = [one.pk for one in found.values()]
    ranks = rank_dependencies(ids, find_failing(now), now)

    assert sorted(found, key=lambda name: ranks[found[name].pk]) == BY_URGENCY


def test_critical_ones_come_first_among_equals():
    now = db_now()
    for name, criticality in (("core->a", "low"), ("core->b", "critical"), ("core->c", "high")):
        reports(dependency(name, now, criticality=criticality), now, "open")

    assert switches_shown(page(browser_as("viewer").get("/breakers/"))) == [
        "core → b",
        "core → c",
        "core → a",
    ]


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        ("open", ["core → open", "core → stale-open"]),
        ("half_open", ["core → half"]),
        ("failing", ["core → failing"]),
        ("overridden", ["core → forced"]),
        ("closed", ["core → forced", "core → failing", "core → stale", "core → healthy"]),
    ],
)
def test_filter_keeps_the_order(state, shown):
    an_incident(db_now())

    assert switches_shown(page(browser_as("viewer").get(f"/breakers/?state={state}"))) == shown
