"""The page *Fleet* of a team: the relays through which its instances were heard."""

import pytest

from controlplane.accounts.teams.tests.teams import create_team
from controlplane.core.clock import db_now
from controlplane.core.fleet.tests.rows import create_process, publish
from controlplane.core.fleet.tests.test_views import find_row, list_names, show_page, words
from controlplane.core.http.tests.callers import browser_of, person
from controlplane.core.instances.models import Instance

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser():
    now = db_now()
    publish(now)
    create_process("dp-1", now)
    create_process("eu-1", now, upstream="dp-1")
    create_process("eu-2", now, upstream="eu-1")
    create_process("us-1", now, upstream="dp-1")
    for name, relay in (("pay/1", "eu-2"), ("pay/2", "eu-2"), ("search/1", "us-1")):
        service = name.partition("/")[0]
        Instance.objects.create(id=name, service=service, relay=relay, heard_at=now)
    pat = person("viewer", "pat")
    create_team("payments", "service:pay", members=[pat])
    return browser_of(pat)


@pytest.mark.parametrize("path", ["/fleet/", "/fleet/rows/"])
def test_filter_selects_data_planes_and_the_way_to_the_teams_instances(browser, path):
    page = show_page(browser, path, team="mine")

    assert set(list_names(page)) == {"dp-1", "eu-1", "eu-2"}
    assert "Showing My teams ; 1 more elsewhere." in words(page)
    assert "2 in My teams" in words(find_row(page, "eu-2"))
    assert "in My teams" not in words(find_row(page, "eu-1"))


def test_headline_counts_the_whole_fleet(browser):
    assert "3 relays" in words(show_page(browser, team="mine"))


def test_refreshes_keep_the_filter(browser):
    assert "/fleet/rows/?team=mine" in show_page(browser, team="mine")


def test_page_and_its_refreshes_say_that_a_filter_names_no_team(browser):
    page = show_page(browser, team="gone")

    assert "There is no team gone , so this list shows all teams." in words(page)
    assert "/fleet/rows/?team=gone" in page


def test_page_without_teams_has_no_filter(db):
    now = db_now()
    publish(now)
    create_process("dp-1", now)

    page = show_page(browser_of(person("viewer")), team="mine")

    assert list_names(page) == ["dp-1"]
    assert "team-filter" not in page
