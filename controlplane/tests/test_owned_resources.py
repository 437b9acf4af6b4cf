"""Every kind of resource that teams can own is listed, with a page; unowned ones by patterns."""

import pytest

from breakers.dead_letters.models import LetterStream
from breakers.models import Dependency, Service
from controlplane.accounts.models import Ownership, Team
from controlplane.core import owned_resources
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import browser_of, person
from slo.tests.factories import slo
from switches.models import Switch

NAMES = (
    "feature:chat",
    "segment:finance",
    "service:core",
    "dependency:core->oracle",
    "slo:core-availability",
    "stream:axiom:dlq:mail",
)


@pytest.fixture
def _resources(db):
    now = db_now()
    for scope, key in (("feature", "chat"), ("segment", "finance")):
        Switch.objects.create(id=f"{scope}:{key}", scope=scope, key=key, registered_at=now)
    Service.objects.create(slug="core", name="Core", changed_at=now)
    Service.objects.create(slug="redis", name="Redis", kind="store", changed_at=now)
    Dependency.objects.create(caller="core", callee="oracle", registered_at=now, changed_at=now)
    Dependency.objects.create(
        caller="core", callee="gone", registered_at=now, changed_at=now, removed_at=now
    )
    LetterStream.objects.create(
        server="default", name="axiom:dlq:mail", origin="axiom:mail", found_at=now
    )
    slo()


@pytest.mark.usefixtures("_resources")
def test_each_kind_is_listed_with_a_page_that_opens():
    found = owned_resources.list_resources()

    browser = browser_of(person("viewer"))
    assert tuple(one.name for one in found) == NAMES
    paths = owned_resources.find_paths(found)
    assert {name: browser.get(path).status_code for name, path in paths.items()} == dict.fromkeys(
        NAMES, 200
    )


@pytest.mark.usefixtures("_resources")
def test_owned_ones_are_left_out_and_kinds_are_chosen():
    team = Team.objects.create(slug="payments", name="Payments", created_at=db_now())
    for pattern in ("segment:*", "dependency:*->oracle", "stream:axiom:*"):
        Ownership.objects.create(team=team, pattern=pattern)

    unowned = [one.name for one in owned_resources.list_unowned()]
    slos = [one.name for one in owned_resources.list_unowned("slo", "stream")]

    assert unowned == ["feature:chat", "service:core", "slo:core-availability"]
    assert slos == ["slo:core-availability"]
