"""The palette with teams: what the user's teams own first, teams, and the search of one team."""

from collections.abc import Sequence

import pytest

from breakers.tests.registered import dependency
from controlplane.accounts.teams.tests.teams import create_team
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import browser_of, person
from controlplane.core.palette import search
from controlplane.core.palette.registry import PaletteEntry
from switches.models import Switch

pytestmark = pytest.mark.django_db


@pytest.fixture
def pat():
    now = db_now()
    keys = [f"finance-{number}" for number in range(60)] + ["my-finance-switch"]
    Switch.objects.bulk_create(
        Switch(id=f"segment:{key}", scope="segment", key=key, registered_at=now) for key in keys
    )
    dependency(now, "finance->oracle")
    pat = person("operator", "pat")
    create_team("payments", "segment:my-*", "dependency:finance->*", members=[pat])
    create_team("platform", "segment:finance-7")
    return pat


def find(user, text: str) -> list[PaletteEntry]:
    groups: Sequence[tuple[str, list[PaletteEntry]]] = search.search_palette(
        search.read_query(text, user, db_now())
    )
    return [one for _, entries in groups for one in entries]


def titles(user, text: str, kind: str = "Switch") -> list[str]:
    return [one.title for one in find(user, text) if one.kind == kind]


def test_own_switch_is_found_among_many_closer_names(pat):
    assert "segment:my-finance-switch" in titles(pat, "finance")
    assert "segment:my-finance-switch" not in titles(person("operator", "sam"), "finance")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("team:payments finance", ["segment:my-finance-switch"]),
        ("team:mine finance", ["segment:my-finance-switch"]),
        ("team:platform finance", ["segment:finance-7"]),
        ("TEAM:Platform finance", ["segment:finance-7"]),
    ],
)
def test_scope_limits_the_search_to_what_a_team_owns(pat, text, found):
    assert titles(pat, text) == found
    assert {one.kind for one in find(pat, text)} <= {"Switch", "Action", "Dependency"}


def test_scope_holds_for_other_kinds_too(pat):
    assert titles(pat, "team:payments oracle", "Dependency") == ["finance → oracle"]
    assert titles(pat, "team:platform oracle", "Dependency") == []


def test_scope_without_words_lists_the_pages_of_the_team(pat):
    paths = {one.path for one in find(pat, "team:payments")}

    pages = ("/", "/attention/", "/breakers/", "/dead-letters/", "/slos/", "/alerts/", "/fleet/")
    assert paths == {f"{page}?team=payments" for page in pages}


def test_teams_are_entries(pat):
    (team,) = [one for one in find(pat, "platf") if one.kind == "Team"]

    assert team.title == "Platform"


def test_unknown_team_is_no_scope(pat):
    assert find(pat, "team:nobody finance") == []
    assert "Search everything" not in browser_of(pat).get("/find/?q=team:x").content.decode()


@pytest.mark.parametrize("path", ["/find/", "/find/part/"])
def test_results_say_that_there_is_no_such_team(pat, path):
    alone = browser_of(person("operator", "rob"))

    assert "There is no team" in browser_of(pat).get(f"{path}?q=team:x").content.decode()
    assert "You are in no team." in alone.get(f"{path}?q=team:mine").content.decode()


def test_page_says_that_it_searches_one_team(pat):
    html = browser_of(pat).get("/find/?q=team:platform finance").content.decode()

    assert 'Only <b dir="auto">Platform</b>.' in html


def test_without_teams_nothing_changes():
    user = person("operator", "rob")
    Switch.objects.create(
        id="segment:finance", scope="segment", key="finance", registered_at=db_now()
    )

    assert titles(user, "finance") == ["segment:finance"]
    assert not [one for one in find(user, "mine") if one.kind == "Team"]
    assert "team:mine" not in browser_of(user).get("/find/").content.decode()
