"""The filters of the switchboard and of the API's list by owning teams."""

import pytest

from controlplane.accounts.models import Ownership, Team
from controlplane.accounts.models.people import User
from controlplane.accounts.teams.tests.teams import create_team
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import as_role, person, signed_in, with_token
from switches.tests.browsers import PART, browser, engaged, page, switches_shown, text
from switches.tests.instances import report_checks

pytestmark = pytest.mark.django_db

NOTE = "team-filter-note"


@pytest.fixture
def switches():
    for each in ("segment:finance", "segment:legal", "feature:search"):
        engaged(each)


@pytest.fixture
def member(switches):
    """Return the browser of a member of Payments, which owns `segment:finance`."""
    pat = person("operator", "pat")
    create_team("payments", "segment:fin*", members=[pat])
    create_team("platform", "segment:legal")
    return browser(pat)


@pytest.mark.parametrize(
    ("wanted", "shown"),
    [
        ("mine", {"segment:finance"}),
        ("platform", {"segment:legal"}),
        ("unowned", {"feature:search"}),
        ("", {"segment:finance", "segment:legal", "feature:search"}),
        ("gone", {"segment:finance", "segment:legal", "feature:search"}),
    ],
)
@pytest.mark.parametrize("path", ["/", "/switchboard/rows/"])
def test_filter_selects_by_owner(member, wanted, shown, path):
    html = page(member.get(f"{path}?team={wanted}", headers=PART if path != "/" else {}))

    assert set(switches_shown(html)) == shown


def test_page_says_how_many_switches_the_filter_hides(member):
    html = page(member.get("/?team=mine"))

    assert "Showing My teams; 2 more elsewhere." in text(html)
    assert NOTE not in page(member.get("/"))


def test_hidden_switches_are_those_that_match_the_other_filters(member):
    assert "1 more elsewhere." in text(page(member.get("/?team=mine&scope=segment")))
    assert "nothing elsewhere." in text(page(member.get("/?team=mine&q=finance")))


def test_headline_counts_the_switches_of_all_teams(member):
    assert "3 engaged" in text(page(member.get("/?team=mine")))


def test_unregistered_switches_are_selected_by_owner(member):
    report_checks("core/1", "segment:finder", "segment:other", at=db_now(), per_second=1)

    html = page(member.get("/?team=mine"))

    assert "segment-finder" in html
    assert "segment-other" not in html
    assert "3 more elsewhere." in text(html)  # Two registered ones, and segment:other.


def test_filter_without_matches_names_the_team(member):
    assert "No switch in My teams matches “zzz”." in text(page(member.get("/?team=mine&q=zzz")))


@pytest.mark.parametrize("path", ["/", "/switchboard/rows/"])
@pytest.mark.parametrize(
    ("wanted", "note"),
    [("mine", "You are in no team"), ("gone", "There is no team gone")],
)
def test_page_says_that_a_filter_names_no_team(member, wanted, note, path):
    other = browser(person("operator", "rob"))

    html = page(other.get(path, {"team": wanted}, headers=PART if path != "/" else {}))

    assert len(switches_shown(html)) == 3
    assert f"{note}, so this list shows all teams." in text(html)


def test_refreshes_repeat_a_filter_that_names_no_team(member):
    html = page(member.get("/?team=gone"))

    assert '<option value="gone" selected>' in html


def test_without_teams_there_is_no_filter(switches):
    html = page(browser(person("operator", "rob")).get("/?team=mine"))

    assert len(switches_shown(html)) == 3
    assert "team-filter" not in html


def list_by_api(api, wanted):
    response = api.get("/switches/", {"team": wanted})
    assert response.status_code == 200, response.content
    return {row["id"] for row in response.json()["results"]}


def test_list_of_the_api_is_filtered_by_owner(member):
    pat = User.objects.get(username="pat")
    api = with_token("switches:read", owner=pat)

    assert list_by_api(api, "mine") == {"segment:finance"}
    assert list_by_api(api, "platform") == {"segment:legal"}
    assert list_by_api(api, "unowned") == {"feature:search"}

    Ownership.objects.create(pattern="feature:*", team=Team.objects.get(slug="payments"))
    assert list_by_api(api, "mine") == {"segment:finance", "feature:search"}


def test_list_of_the_api_for_mine_depends_on_the_caller(member):
    pat, lea = User.objects.get(username="pat"), person("operator", "lea")
    create_team("search", "feature:*", members=[lea])

    assert list_by_api(signed_in(pat), "mine") == {"segment:finance"}
    assert list_by_api(signed_in(lea), "mine") == {"feature:search"}


@pytest.mark.parametrize(
    ("wanted", "detail"), [("mine", "You are in no team."), ("gone", "There is no team 'gone'.")]
)
def test_api_refuses_a_filter_that_names_no_team(member, wanted, detail):
    refused = as_role("viewer").get("/switches/", {"team": wanted})

    assert refused.status_code == 400
    assert detail in refused.content.decode()


def test_without_teams_everything_is_unowned(switches):
    assert len(list_by_api(as_role("viewer"), "unowned")) == 3
