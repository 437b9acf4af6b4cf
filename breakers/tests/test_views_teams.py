"""Owners on the pages of breakers, the filter by team, and what the pages offer to others."""

import pytest
from django.utils.html import escape

from breakers.tests.house import dependency, forced, reports
from controlplane.accounts.models import AuthorityRule
from controlplane.accounts.models.people import User
from controlplane.accounts.teams.tests.teams import create_team
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person, signed_in
from switches.tests.browsers import PART, Tags, browser, page, switches_shown, text

pytestmark = pytest.mark.django_db
PAGE = "/breakers/core/oracle/"
FORM = f"{PAGE}override/"
REMOVAL = f"{PAGE}override/remove/"
REFUSED = escape("Payments owns dependency:core->oracle. Only its members may override it.")


@pytest.fixture
def oracle():
    return dependency("core->oracle", db_now())


@pytest.fixture
def owner(oracle):
    """Return the browser of a member of Payments, which owns `core->oracle`."""
    pat = person("operator", "pat")
    create_team("payments", "dependency:core->*", members=[pat], leads=[person("operator", "lee")])
    return browser(pat)


@pytest.fixture
def other(owner):
    sam = person("operator", "sam")
    create_team("search", "dependency:web->*", members=[sam])
    return browser(sam)


def modes(html):
    """Return the modes that the form of an override offers."""
    radios = Tags(html).having("input", name="mode")
    return {radio["value"] for radio in radios if "disabled" not in radio}


def test_page_names_the_owner_and_says_why_others_do_not_end_a_forced_open(owner, other, oracle):
    forced(oracle, db_now())

    seen, own = page(other.get(PAGE)), page(owner.get(PAGE))

    for html in (seen, own):
        assert "Owned by Payments" in text(html)
        assert 'id="do-override"' in html
    assert REFUSED in text(seen)
    assert REFUSED not in text(own)
    assert 'id="do-remove"' not in seen
    assert 'id="do-remove"' in own


def test_others_may_end_what_lets_every_call_through(other, oracle):
    forced(oracle, db_now(), "forced_closed")

    assert 'id="do-remove"' in page(other.get(PAGE))
    assert other.get(REMOVAL).status_code == 200


def test_form_offers_others_to_force_open_alone(owner, other):
    assert modes(page(other.get(FORM))) == {"forced_open"}
    assert REFUSED in text(page(other.get(FORM)))
    assert len(modes(page(owner.get(FORM)))) == 5


def test_form_says_that_others_do_not_shorten_a_forced_open(owner, other, oracle):
    forced(oracle, db_now())

    assert "yours must last at least as long" in text(page(other.get(FORM)))
    assert "yours must last" not in text(page(owner.get(FORM)))


def test_form_of_the_removal_is_refused_at_once(other, oracle):
    forced(oracle, db_now())

    refused = other.get(REMOVAL)

    assert refused.status_code == 403
    assert "pat" in text(page(refused))


def test_viewer_sees_neither_actions_nor_a_refusal(owner, oracle):
    html = page(browser(person("viewer")).get(PAGE))

    assert 'id="do-override"' not in html
    assert "Only its members" not in html


def test_lead_finds_the_policy_if_a_rule_lets_leads_edit(owner):
    lead = browser(User.objects.get(username="lee"))
    assert 'id="do-edit"' not in page(lead.get(PAGE))
    AuthorityRule.objects.create(
        action="edit", kind="dependency", relation="owner", role="approver"
    )

    assert 'id="do-edit"' in page(lead.get(PAGE))
    assert lead.get(f"{PAGE}edit/").status_code == 200
    assert lead.get("/breakers/new/?caller=core&callee=vision").status_code == 302
    assert lead.get("/breakers/new/?caller=web&callee=vision").status_code == 403


@pytest.mark.parametrize(
    ("wanted", "shown", "note"),
    [
        ("mine", {"core → oracle"}, "Showing My teams; 2 more elsewhere."),
        ("search", {"web → oracle"}, "Showing Search; 2 more elsewhere."),
        ("unowned", {"batch → oracle"}, "Showing Unowned; 2 more elsewhere."),
        ("", {"core → oracle", "web → oracle", "batch → oracle"}, ""),
    ],
)
def test_board_is_filtered_by_team(owner, other, oracle, wanted, shown, note):
    now = db_now()
    for each in (oracle, dependency("web->oracle", now), dependency("batch->oracle", now)):
        reports(each, now)

    for headers in ({}, PART):
        html = page(owner.get(f"/breakers/?team={wanted}", headers=headers))
        assert set(switches_shown(html)) == shown
        assert note in text(html)
        assert ("Showing" in text(html)) is bool(note)


def test_hidden_dependencies_are_those_that_match_the_other_filters(owner, other, oracle):
    now = db_now()
    reports(oracle, now, "open")
    reports(dependency("web->oracle", now), now, "open")
    reports(dependency("web->vision", now), now)

    html = page(owner.get("/breakers/?team=mine&state=open"))

    assert switches_shown(html) == ["core → oracle"]
    assert "1 more elsewhere" in text(html)
    assert "2 open" in text(html)


def test_without_teams_there_is_no_filter(oracle):
    reports(oracle, db_now())

    html = page(browser(person("operator", "rob")).get("/breakers/?team=mine"))

    assert switches_shown(html) == ["core → oracle"]
    assert "team-filter" not in html
    assert "Owned by" not in html


@pytest.mark.parametrize("path", ["/dependencies/", "/breakers/"])
@pytest.mark.parametrize(
    ("wanted", "callers"),
    [
        ("mine", ["core"]),
        ("search", ["web"]),
        ("unowned", ["batch"]),
        (None, ["core", "web", "batch"]),
    ],
)
def test_api_filters_by_team(other, oracle, path, wanted, callers):
    now = db_now()
    dependency("web->oracle", now)
    dependency("batch->oracle", now)
    api = signed_in(User.objects.get(username="pat"))

    found = api.get(path, {"team": wanted} if wanted else {}).json()["results"]

    assert [one["caller"] for one in found] == callers
    assert api.get(path, {"team": "gone"}).status_code == 400


def test_rule_that_lets_owners_edit_offers_the_forms_to_leads(owner, other, oracle):
    AuthorityRule.objects.create(
        action="edit", kind="dependency", relation="owner", role="approver"
    )
    lead = browser(User.objects.get(username="lee"))

    for client, status in ((lead, 200), (owner, 403), (other, 403)):
        is_offered = status == 200
        assert ('id="do-register"' in page(client.get("/breakers/"))) == is_offered
        assert (f"{PAGE}edit/" in page(client.get("/breakers/fallbacks/"))) == is_offered
        assert client.get("/breakers/new/").status_code == status
    assert lead.get("/breakers/web/oracle/edit/").status_code == 403


def test_refused_override_links_to_asking(owner, other, oracle):
    forced(oracle, db_now())

    link = "/ask/?action=override&amp;resource=dependency%3Acore-%3Eoracle"

    assert link in page(other.get(PAGE))
    assert link not in page(owner.get(PAGE))
