"""The attention items of a team: filtered, counted if hidden, with the actions that rules allow."""

from dataclasses import replace
from datetime import timedelta

import pytest

from controlplane.accounts.models.people import User
from controlplane.accounts.teams.tests.teams import create_team
from controlplane.core.actions import Action
from controlplane.core.attention import services
from controlplane.core.authority import read_teams
from controlplane.core.clock import db_now
from controlplane.core.escalations.services import open_escalation
from controlplane.core.http.tests.callers import as_role, person, signed_in
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.page_registry import AttentionAction, AttentionItem
from controlplane.core.roles import Power
from switches.tests.browsers import PART, browser, engaged, overdue, page, text

pytestmark = pytest.mark.django_db

PAGE, ROWS = "/attention/", "/attention/rows/"


@pytest.fixture
def pat():
    """Return a member of Payments, whose switch is overdue, as is one of Platform and of nobody."""
    pat = person("operator", "pat")
    create_team("payments", "segment:fin*", members=[pat])
    create_team("platform", "segment:legal", "feature:*")
    for switch in ("segment:finance", "segment:legal", "segment:other"):
        overdue(switch)
    return pat


def describe(response):
    return text(page(response))


@pytest.mark.parametrize("path", [PAGE, ROWS])
@pytest.mark.parametrize(
    ("wanted", "shown"),
    [("mine", "finance"), ("platform", "legal"), ("unowned", "other")],
)
def test_filter_selects_the_items_of_a_team(pat, path, wanted, shown):
    headers = PART if path == ROWS else {}

    found = describe(browser(pat).get(f"{path}?team={wanted}", headers=headers))

    for name in ("finance", "legal", "other"):
        assert (f"segment:{name} is overdue" in found) == (name == shown)


def test_page_counts_the_items_that_the_filter_hides(pat):
    found = describe(browser(pat).get(f"{PAGE}?team=mine"))

    _, hidden = (
        services.read_all(db_now())
        .shown_to(pat.pk)
        .split_by_team(read_teams().filter_for(pat.pk, "mine"))
    )
    assert hidden.critical == len([one for one in hidden.waiting if one.severity == "critical"]) > 1
    assert f"{len(hidden.waiting)} more elsewhere, {hidden.critical} critical." in found


def test_refreshes_keep_the_filter(pat):
    html = page(browser(pat).get(f"{PAGE}?team=mine"))

    assert f'hx-get="{ROWS}?team=mine"' in html
    assert f'hx-get="{ROWS}"' in page(browser(pat).get(PAGE))


def test_page_and_its_refreshes_say_that_a_filter_names_no_team(pat):
    html = page(browser(pat).get(f"{PAGE}?team=gone"))

    assert "There is no team gone, so this list shows all teams." in text(html)
    assert f'hx-get="{ROWS}?team=gone"' in html


def acknowledged(subject: str, resource: str) -> Escalation:
    now = db_now()
    row = open_escalation(
        subject=subject, event="x.y", severity="critical", facts={}, now=now, resource=resource
    )
    Escalation.objects.filter(pk=row.pk).update(acknowledged_at=now, acknowledged_by="user:kim")
    return row


def test_filter_selects_the_acknowledged_items_too(pat):
    own = acknowledged("outbox:a", "segment:finance")
    other = acknowledged("outbox:b", "segment:legal")

    html = page(browser(pat).get(f"{PAGE}?team=mine"))

    assert f'id="escalation-{own.pk}"' in html
    assert f'id="escalation-{other.pk}"' not in html
    overview = services.read_all(db_now()).shown_to(pat.pk)
    _, hidden = overview.split_by_team(read_teams().filter_for(pat.pk, "mine"))
    assert f"{len(hidden.waiting) + 1} more elsewhere" in text(html)


def test_acknowledged_item_that_the_filter_hides_is_not_listed_apart(pat):
    item = next(
        one
        for one in services.read_all(db_now()).waiting
        if one.resource == "segment:legal" and one.subjects
    )
    row = acknowledged(item.subjects[0], "segment:legal")

    assert f'id="escalation-{row.pk}"' not in page(browser(pat).get(f"{PAGE}?team=mine"))


def test_numbers_of_headline_and_navigation_are_those_of_all_teams(pat):
    everything = services.read_all(db_now()).shown_to(pat.pk)

    found = describe(browser(pat).get(f"{PAGE}?team=mine"))

    assert f"{everything.critical} critical" in found


def test_item_names_its_owner(pat):
    html = page(browser(pat).get(PAGE))

    assert "Payments ·" in text(html)


def test_mine_shows_what_the_person_engaged_whoever_owns_it(pat):
    engaged("feature:beta", by=pat)

    assert "You engaged feature:beta" in describe(browser(pat).get(f"{PAGE}?team=mine"))


def test_empty_filter_names_the_team(pat):
    create_team("search", members=[person("operator", "sam")])

    found = describe(browser(pat).get(f"{PAGE}?team=search"))

    assert "Nothing needs attention in Search" in found


def test_without_teams_there_is_no_filter():
    overdue("segment:finance")

    html = page(browser(person("operator", "rob")).get(f"{PAGE}?team=mine"))

    assert "segment:finance is overdue" in text(html)
    assert "team-filter" not in html


def test_release_is_offered_to_the_owner_and_extend_to_everyone(pat):
    create_team("search", members=[person("operator", "sam")])

    def labels(user: User) -> set[str]:
        item = next(
            one
            for one in services.read_all(db_now()).waiting
            if one.kind == "overdue" and one.resource == "segment:finance"
        )
        permitted = services.permitted_actions(item, user.as_actor(), read_teams())
        return {one.label for one in permitted}

    assert labels(pat) == {"Extend…", "Release…", "Acknowledge…"}
    assert labels(User.objects.get(username="sam")) == {"Extend…", "Acknowledge…"}


def test_lead_may_approve_for_their_own_team_alone():
    lea = person("operator", "lea")
    create_team("payments", "segment:fin*", leads=[lea])
    approve = AttentionAction("Approve", "/", Power.APPROVE, "check", authority=Action.APPROVE)
    now = db_now() - timedelta(hours=1)
    item = AttentionItem("approval", "info", "x", "", "/", now, actions=(approve,))

    def offered(resource: str) -> bool:
        one = replace(item, resource=resource)
        return bool(services.permitted_actions(one, lea.as_actor(), read_teams()))

    assert offered("segment:finance")
    assert not offered("segment:legal")


def test_api_filters_by_team(pat):
    found = signed_in(pat).get("/attention/", {"team": "mine", "kind": "overdue"}).json()

    assert [one["resource"] for one in found["results"]] == ["segment:finance"]
    assert found["total"] == 1
    assert as_role("viewer").get("/attention/", {"team": "mine"}).status_code == 400
