"""Needs attention names teams for which nobody can act, or of which nobody is on call."""

import pytest

from controlplane.accounts.models import User
from controlplane.accounts.teams.attention import list_without_members
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from controlplane.notify.models import Target, TeamContact
from controlplane.notify.targets.attention import list_without_on_call

from .company import make_team


@pytest.fixture
def company(db):
    person("admin", "ada")
    return make_team("company", members={"ada": "lead"})


def titles(source):
    return [one.title for one in source(db_now())]


def test_owning_and_root_teams_without_active_member_are_listed(company):
    make_team("payments", parent="company", owns=["segment:finance"])
    make_team("folder", parent="company")
    make_team("other")

    assert titles(list_without_members) == [
        "Other has no active member",
        "Payments has no active member",
    ]


def test_deactivated_members_do_not_count(company):
    assert titles(list_without_members) == []

    User.objects.update(is_active=False)

    assert titles(list_without_members) == ["Company has no active member"]


def test_on_call_of_a_team_above_covers_those_below(company):
    make_team("payments", parent="company", owns=["segment:finance"])
    make_team("search", parent="company", owns=["segment:search"])
    make_team("folder", parent="company")
    assert titles(list_without_on_call) == ["2 teams have nobody on call"]

    search = company.children.get(slug="search")
    target = Target.objects.create(name="rota", kind="on_call", created_at=db_now())
    contact = TeamContact.objects.create(team=search, kind="on_call", target=target)
    assert titles(list_without_on_call) == ["Payments has nobody on call"]

    contact.team = company
    contact.save()
    assert titles(list_without_on_call) == []


def test_installation_without_teams_has_no_items(db):
    assert titles(list_without_members) == titles(list_without_on_call) == []
