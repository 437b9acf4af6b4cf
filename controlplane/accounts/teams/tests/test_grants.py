"""Requests to the owner for one action, and the permission for an hour that they give."""

import re
from dataclasses import replace
from datetime import timedelta
from html import unescape

import pytest

from controlplane.accounts.models import AuthorityRule, User
from controlplane.accounts.teams import grants
from controlplane.core import authority
from controlplane.core.actions import Action
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, Forbidden, InvalidInput
from controlplane.core.http.tests.callers import person, signed_in

from .teams import create_team, create_token_actor

pytestmark = pytest.mark.django_db
FINANCE, WHY = "segment:finance", "5xx is back to zero, INC-4411"


@pytest.fixture(autouse=True)
def payments():
    root = create_team("root", members=[person("approver", "rita")])
    create_team("payments", "segment:fin*", leads=[person("operator", "lee")], parent=root)
    create_team("search", "feature:search*", members=[person("approver", "sue")], parent=root)


@pytest.fixture
def sam():
    return person("operator", "sam")


def page(client, address):
    html = client.get(address).content.decode()
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def user(name):
    return User.objects.get(username=name)


def ask(who, action="release", resource=FINANCE, reason=WHY):
    fields = {"action": action, "resource": resource, "reason": reason}
    return grants.ask(**fields, actor=who.as_actor(), now=db_now())


def approve(approval, name="lee"):
    return approvals.approve(approval.pk, comment="", actor=user(name).as_actor(), now=db_now())


def may(who, action=Action.RELEASE, resource=FINANCE):
    actor = who if not hasattr(who, "as_actor") else who.as_actor()
    return authority.decide(actor, action, resource).is_allowed


def test_approved_request_allows_that_person_that_action_on_that_resource(sam):
    kim = person("operator", "kim")
    request = ask(sam)
    assert not may(sam)

    approve(request)

    assert may(sam)
    assert may(replace(sam.as_actor(), type="slack"))
    assert not may(sam, Action.RELEASE_AT_ONCE)
    assert not may(sam, resource="segment:fintech")
    assert not may(kim)
    assert not may(create_token_actor(sam))


def test_permission_ends_after_an_hour(sam):
    approve(ask(sam))
    Approval.objects.update(decided_at=db_now() - timedelta(minutes=61))

    assert not may(sam)


@pytest.mark.parametrize("name", ["sue", "sam", "ann"])
def test_only_approvers_of_the_owner_allow_it(sam, name):
    person("admin", "ann")
    request = ask(sam)

    with pytest.raises(Forbidden):
        approve(request, name)
    assert not may(sam)


@pytest.mark.parametrize("verdict", ["denied", "expired", "void"])
def test_request_that_was_not_approved_allows_nothing(sam, verdict):
    ask(sam)
    Approval.objects.update(state=verdict, decided_at=db_now())

    assert not may(sam)


def test_approver_of_another_team_does_not_allow_themselves(sam):
    sue = user("sue")
    request = ask(sue)

    with pytest.raises(Forbidden):
        approve(request, "sue")


def test_equal_request_is_made_once_and_an_edited_one_replaces_it(sam):
    first, again = ask(sam), ask(sam)
    assert again.pk == first.pk

    edited = ask(sam, reason="5xx is at zero since noon, INC-4411")
    assert edited.replaces_id == first.pk
    with pytest.raises(Conflict):
        approve(first)
    approve(edited)
    assert may(sam)


def test_several_people_ask_for_the_same(sam):
    kim = person("operator", "kim")

    assert ask(sam).pk != ask(kim).pk


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"action": "fly"}, "action"),
        ({"resource": "segment:*"}, "resource"),
        ({"resource": "segment:fin ance"}, "resource"),
        ({"resource": "segment:fin\u00e4nz"}, "resource"),
        ({"resource": "moon:finance"}, "resource"),
        ({"resource": "team:payments"}, "resource"),
        ({"resource": "stream:" + "x" * 190}, "resource"),
        ({"reason": " "}, "reason"),
    ],
)
def test_what_makes_no_sense_is_refused(sam, fields, wrong):
    with pytest.raises(InvalidInput) as refused:
        ask(sam, **fields)

    assert wrong in refused.value.errors


def test_who_may_already_does_not_ask():
    with pytest.raises(Conflict, match="may already release it"):
        ask(user("lee"))
    html = signed_in(user("lee")).client.get(f"/ask/?action=release&resource={FINANCE}").content
    assert b"need to ask" in html
    assert b'name="reason"' not in html


@pytest.mark.parametrize(
    ("role", "action", "resource"),
    [
        ("viewer", "release", FINANCE),
        ("operator", "approve", FINANCE),
        ("operator", "edit", "service:core"),
        ("operator", "release_at_once", "feature:nobodys"),
    ],
)
def test_what_nobody_can_be_asked_for_is_refused(role, action, resource):
    with pytest.raises(Forbidden):
        ask(person(role, "zoe"), action, resource)


def test_approver_does_not_lend_what_only_admins_may_do(sam):
    AuthorityRule.objects.create(action="edit", kind="segment", relation="owner", role="admin")

    with pytest.raises(Forbidden):
        ask(sam, "edit")


def test_nobody_is_told_to_ask_for_a_change_of_a_team(sam):
    assert not authority.decide(sam.as_actor(), Action.EDIT, "team:payments").can_ask


def test_token_does_not_ask(sam):
    fields = {"action": "release", "resource": FINANCE, "reason": WHY}

    with pytest.raises(Forbidden):
        grants.ask(**fields, actor=create_token_actor(sam), now=db_now())


def test_api_asks_and_refusals_say_that_it_can(sam):
    api = signed_in(sam)
    api.engage(FINANCE)
    body = {"justification": "5xx below 0.1 % for twenty minutes"}
    refused = api.post("/switches/segment/finance/release", body).json()
    asked = {name: refused[name] for name in ("action", "resource")}

    response = api.post("/authority/ask", {**asked, "reason": WHY})

    assert (refused["can_ask"], refused["on_call"]) == (True, None)
    assert response.status_code == 202
    assert response.json()["kind"] == "grant"
    approve(Approval.objects.get(pk=response.json()["id"]))
    assert api.post("/switches/segment/finance/release", body).status_code == 202


def test_page_asks(sam):
    browser = signed_in(sam).client
    address = "/ask/?action=release&resource=segment%3Afinance"

    shown = page(browser, address)
    assert "Payments owns segment:finance." in shown
    assert "lee or rita can approve it." in shown
    assert browser.post(address, {"reason": ""}).status_code == 422
    assert browser.post(address, {"reason": WHY}).status_code == 302
    assert Approval.objects.get().target.startswith(f"{FINANCE}#release:")
    assert "let sam release it" in page(browser, "/approvals/")


@pytest.mark.parametrize("query", ["", "?action=fly&resource=segment:a", "?action=edit&resource=a"])
def test_page_of_a_wrong_link_is_an_error(sam, query):
    assert signed_in(sam).client.get(f"/ask/{query}").status_code == 400
