"""Entries of the palette: complete, by role, and fast."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import resolve

from controlplane.accounts.models.people import User
from controlplane.core.clock import db_now
from controlplane.core.console_urls import DOCUMENTATION_PATH
from controlplane.core.http.tests.callers import person
from controlplane.core.palette.registry import ACTION, PALETTE_COMMANDS
from switches.models import Switch
from switches.tests.browsers import browser, browser_as, engaged, page, released
from switches.tests.ramps import start_ramp

pytestmark = pytest.mark.django_db


def titles(html):
    return re.findall(r'data-title="([^"]+)"', html)


def find_titles(role, text):
    """Return the titles offered to a person of this role for a text."""
    user = User.objects.filter(role=role).first() or person(role)
    return titles(page(browser(user).get("/find/part/", {"q": text})))


def test_every_command_leads_to_a_page_that_answers():
    # Read before the first query: loading all URLs takes a while, and a transaction may not wait.
    paths = {one.title: one.path for one in PALETTE_COMMANDS.values()}
    admin = browser_as("admin")

    for command in PALETTE_COMMANDS.values():
        assert bool(command.path) != bool(command.runs), command.title
        if command.path not in ("", DOCUMENTATION_PATH):  # Which is served without Django.
            assert admin.get(paths[command.title]).status_code == 200, command.title


def test_no_two_commands_have_the_same_keys_or_title():
    commands = PALETTE_COMMANDS.values()
    keys = [one.keys for one in commands if one.keys]

    assert len(keys) == len(set(keys))
    assert len({one.title for one in commands}) == len(commands)


@pytest.mark.parametrize("role", ["viewer", "admin"])
@pytest.mark.parametrize(
    ("begins", "ends"),
    [('<nav id="nav"', "</nav>"), ('<div class="menu__panel">', "</div>\n</details>")],
)
def test_navigation_and_menu_have_nothing_that_the_palette_lacks(role, begins, ends):
    resolve("/")  # Load the URLs now, not in the first request.
    html = page(browser_as(role).get("/"))
    shown = html[html.index(begins) : html.index(ends, html.index(begins))]
    leads_to = set(re.findall(r'<a (?:class="menu__item" )?href="([^"]+)"', shown))

    paths = {one.path for one in PALETTE_COMMANDS.values()}

    assert len(leads_to) >= 3
    assert leads_to <= paths


def test_people_are_for_admins_and_tokens_for_all():
    assert "People" in find_titles("admin", "people")
    assert {"Add a person…", "Create a token…"} <= set(find_titles("admin", "new"))
    assert "People" not in find_titles("operator", "people")
    assert "Create a token…" not in find_titles("operator", "token")
    for title in ("Tokens", "Security", "Sessions", "Preferences"):
        assert title in find_titles("viewer", title.lower())


@pytest.mark.parametrize(
    ("role", "may"), [("viewer", False), ("operator", True), ("approver", True), ("admin", True)]
)
def test_actions_are_for_those_who_may(role, may):
    engaged("segment:finance")

    assert ("Engage a switch…" in find_titles(role, "")) is may
    assert ("Engage feature:x1…" in find_titles(role, "engage feature:x1")) is may
    assert ("Release segment:finance…" in find_titles(role, "release segment:finance")) is may
    assert ("Administration" in find_titles(role, "admin")) is (role == "admin")


def test_verb_that_makes_no_sense_now_offers_the_page_alone():
    engaged("segment:finance")
    engaged("feature:calm")
    released("feature:calm")

    assert find_titles("operator", "engage segment:finance") == ["segment:finance"]
    assert find_titles("operator", "release feature:calm") == ["feature:calm"]


def test_key_that_no_switch_has_is_offered_in_each_scope():
    assert find_titles("operator", "kill nl2sql") == [
        "Engage segment:nl2sql…",
        "Engage feature:nl2sql…",
        "Engage experiment:nl2sql…",
    ]


@pytest.mark.parametrize("text", ["kill everything", "stop all", "engage Global", "everything"])
def test_everything_is_what_the_global_switch_stops(text):
    offered = find_titles("operator", text)

    assert "Engage global:all…" in offered[:2]
    assert not [one for one in offered if one.startswith("Engage") and "global:all" not in one]


@pytest.mark.parametrize(
    "text", ["%", "_", "\\", "engage global:x", "force", "'\"<b>", "\x00", "é" * 500]
)
def test_odd_text_is_answered(text):
    response = browser_as("admin").get("/find/part/", {"q": text})

    assert response.status_code == 200
    assert "<b>" not in "".join(titles(page(response)))


def test_whoever_is_not_signed_in_learns_nothing(client):
    assert client.get("/find/part/", headers={"HX-Request": "true"}).status_code == 401
    assert client.get("/find/").status_code == 302


def test_number_of_queries_does_not_grow_with_what_is_there(client):
    operator = browser_as("operator")
    engaged("segment:fin-0")
    with CaptureQueriesContext(connection) as few:
        operator.get("/find/part/", {"q": "fin"})
    switches = [
        Switch(id=f"segment:fin-{n}", scope="segment", key=f"fin-{n}", registered_at=db_now())
        for n in range(1, 300)
    ]
    Switch.objects.bulk_create(switches)

    with CaptureQueriesContext(connection) as many:
        html = page(operator.get("/find/part/", {"q": "fin"}))

    assert len(many) <= len(few) + 1
    assert "segment:fin-0" in titles(html)[0]  # what is stopped comes first


def test_commands_say_their_keys_where_they_are_offered():
    html = page(browser_as("operator").get("/find/part/"))
    engage = next(
        one for one in PALETTE_COMMANDS.values() if one.kind == ACTION and one.keys == "e"
    )

    assert re.search(rf"{engage.title}.*?<kbd>e</kbd>", html, re.S)


def test_verb_alone_leads_to_what_is_engaged_or_ramps():
    kim = engaged("segment:finance")
    ramp = start_ramp("feature:nl2sql")
    client = browser(kim)

    def offered(text):
        return titles(page(client.get("/find/part/", {"q": text})))

    assert {"Release segment:finance", f"Release {ramp.switch_id}"} <= set(offered("release"))
    assert "Extend segment:finance" in offered("extend")
    assert "Undo segment:finance" in offered("undo")
    assert f"Abort {ramp.switch_id}" in offered("abort")
    assert "Abort segment:finance" not in offered("abort")
    assert "Undo what you engaged" in offered("undo")
    assert "Release segment:finance" not in find_titles("viewer", "release")


def test_keys_that_take_back_are_taught():
    html = page(browser_as("operator").get("/"))

    assert {"z", "a"} <= set(re.findall(r'data-keys="([^"]+)"', html))
