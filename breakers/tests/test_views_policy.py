"""Tests of the policy editor: fields, preview and saving."""

import pytest

from breakers.models import Dependency, Registry
from breakers.policies.differences import policy_sections
from breakers.policies.policy import remove_aliases, validate_outage, validate_policy
from breakers.tests.house import dependency, discovered
from breakers.views.forms import parse_fields, untouched_texts
from controlplane.core.clock import db_now
from switches.tests.browsers import Tags, browser_as, page, text

pytestmark = pytest.mark.django_db

PATH = "/breakers/core/oracle/edit/"
FALLBACKS = "/breakers/fallbacks/"
PREVIEW = {"HX-Request": "true", "HX-Target": "preview"}
RICH = {
    "protocol": "http",
    "timeout_ms": 60_000,
    "criticality": "high",
    "routes": [{"pattern": "/event-logs/**", "timeout_ms": 300_000, "reason": "large uploads"}],
    "breaker": {"failure_threshold": 5, "window_seconds": 60, "half_open_calls": 1},
    "retry": {"attempts": 2, "retry_on": [503, "timeout"]},
    "bulkhead": {"tier": "critical"},
    "fallback": {
        "mode": "provider",
        "chain": [{"provider": "OpenAI", "model": "gpt-4o-mini"}, "cache"],
        "message": "자연어 쿼리를 일시적으로 사용할 수 없습니다",
    },
    "on_outage": {"action": "trip", "switch": "segment:finance"},
}


def form_of(one: Dependency) -> dict[str, str]:
    """Return what the browser sends when nothing was touched."""
    texts = untouched_texts(remove_aliases(one.document), one.on_outage)
    return {name: value for name, value in texts.items() if value}


def read_seen(browser) -> str:
    return str(Tags(page(browser.get(PATH))).value("seen"))


@pytest.mark.parametrize(
    "fields",
    [
        RICH,
        {},
        {"breaker": {}},
        {"fallback": {"mode": "none"}},
        {"bulkhead": {"limit": 20, "mode": "adaptive", "min_limit": 5, "max_limit": 50}},
        {"budget": {"tokens": 10**12, "window_seconds": 1_234_567.0, "per_key_tokens": 1_234_567}},
        {"breaker": {"slow_call_seconds": 12_345.678, "half_open_max_seconds": 0}},
    ],
)
def test_form_that_nobody_touched_means_the_same_policy(fields):
    row = dependency("core->oracle", db_now(), **fields)

    found, errors = parse_fields(untouched_texts(remove_aliases(row.document), row.on_outage))

    on_outage = found.pop("on_outage")
    assert errors == {}
    assert validate_policy(found) == remove_aliases(row.document)
    assert validate_outage(on_outage) == row.on_outage


@pytest.mark.parametrize(("window_type", "size"), [("count", 100), ("time", 60)])
def test_breaker_switched_on_with_nothing_typed_has_its_defaults(window_type, size):
    row = dependency("core->oracle", db_now())

    texts = untouched_texts(remove_aliases(row.document), row.on_outage)
    found, errors = parse_fields({**texts, "has.breaker": "on", "breaker.window_type": window_type})

    found.pop("on_outage")
    assert errors == {}
    assert validate_policy(found)["breaker"]["window_size"] == size


def test_tier_chosen_with_nothing_typed_has_its_queue():
    row = dependency("core->oracle", db_now())

    texts = untouched_texts(remove_aliases(row.document), row.on_outage)
    found, errors = parse_fields({**texts, "has.bulkhead": "on", "bulkhead.tier": "critical"})

    found.pop("on_outage")
    assert errors == {}
    bulkhead = validate_policy(found)["bulkhead"]
    assert (bulkhead["limit"], bulkhead["queue"], bulkhead["queue_seconds"]) == (5, 10, 300)


def test_long_number_is_shown_with_all_its_digits():
    row = dependency("core->oracle", db_now(), breaker={"slow_call_seconds": 12_345.678})

    assert untouched_texts(row.document, {})["breaker.slow_call_seconds"] == "12345.678"
    [line] = [
        line
        for section in policy_sections(row.document)
        for line in section.lines
        if line.path == "breaker.slow_call_seconds"
    ]
    assert line.value == "12345.678 s"


def test_preview_names_what_would_change_and_saves_nothing():
    row = dependency("core->oracle", db_now(), **RICH)
    version = Registry.objects.get().version
    sent = {**form_of(row), "timeout_ms": "30000", "do": "save"}

    html = page(browser_as("admin").post(PATH, sent, headers=PREVIEW))

    assert "1 change" in text(html)
    assert "<del>60000</del>" in html
    assert "<ins>30000</ins>" in html
    assert Registry.objects.get().version == version


def test_plain_button_shows_the_changes_before_saving():
    row = dependency("core->oracle", db_now(), **RICH)
    version = Registry.objects.get().version

    response = browser_as("admin").post(
        PATH, {**form_of(row), "retry.attempts": "4", "do": "check"}
    )

    assert response.status_code == 200
    assert "<ins>4</ins>" in page(response)
    assert Registry.objects.get().version == version


def test_saving_changes_the_policy_and_numbers_it():
    row = dependency("core->oracle", db_now(), **RICH)
    version = Registry.objects.get().version
    browser = browser_as("admin")
    sent = {**form_of(row), "breaker.failure_count": "7", "do": "save", "seen": read_seen(browser)}

    response = browser.post(PATH, sent)

    row.refresh_from_db()
    assert response["Location"] == "/breakers/core/oracle/"
    assert row.document["breaker"]["failure_count"] == 7
    assert Registry.objects.get().version == version + 1


def test_unchecked_section_is_left_out_of_the_policy():
    row = dependency("core->oracle", db_now(), **RICH)
    browser = browser_as("admin")
    sent = {**form_of(row), "do": "save", "seen": read_seen(browser)}
    del sent["has.bulkhead"]

    browser.post(PATH, sent)

    row.refresh_from_db()
    assert row.document["bulkhead"] is None


def test_form_opened_before_somebody_elses_change_overwrites_nothing():
    row = dependency("core->oracle", db_now(), **RICH)
    browser = browser_as("admin")
    opened = read_seen(browser)
    dependency("core->oracle", db_now(), **{**RICH, "timeout_ms": 10_000})

    response = browser.post(PATH, {**form_of(row), "owner": "me", "do": "save", "seen": opened})

    row.refresh_from_db()
    assert response.status_code == 409
    assert "Someone else changed this policy" in page(response)
    assert (row.document["timeout_ms"], row.owner) == (10_000, "")


def test_nothing_different_is_no_change():
    row = dependency("core->oracle", db_now(), **RICH)
    version = Registry.objects.get().version
    browser = browser_as("admin")

    response = browser.post(PATH, {**form_of(row), "do": "save", "seen": read_seen(browser)})

    assert response.status_code == 302
    assert Registry.objects.get().version == version


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("timeout_ms", "soon", "Enter a whole number."),
        ("breaker.failure_rate", "2", "Must be from 0.0001 to 1."),
        ("fallback.chain", "{broken", "must be JSON"),
        ("routes", "/a soon", "Line 1: enter a pattern, then milliseconds."),
        ("on_outage.switch", "x", "Name the switch to engage"),
        ("runbook_url", "wiki", "http://"),
    ],
)
def test_what_is_wrong_stands_beside_its_field_and_nothing_is_saved(name, value, message):
    row = dependency("core->oracle", db_now(), **RICH)
    version = Registry.objects.get().version
    browser = browser_as("admin")
    sent = {**form_of(row), name: value, "do": "save", "seen": read_seen(browser)}

    response = browser.post(PATH, sent)

    assert response.status_code == 422
    assert message in text(page(response))
    assert value in page(response)
    assert Registry.objects.get().version == version


def test_discovered_one_is_registered_by_the_form():
    discovered("core->oracle", db_now())
    browser = browser_as("admin")

    response = browser.post(PATH, {"timeout_ms": "5000", "do": "save", "seen": read_seen(browser)})

    assert response.status_code == 302
    assert Dependency.objects.get().document["timeout_ms"] == 5000


def test_policies_are_the_admins_and_others_see_no_way_to_them():
    row = dependency("core->oracle", db_now(), **RICH)
    paths = (PATH, "/breakers/core/oracle/remove/")
    links = [f'href="{path}"' for path in paths]

    browsers = {role: browser_as(role) for role in ("viewer", "operator", "approver", "admin")}

    seen_by = {
        role: [page(one.get(path)) for path in ("/breakers/core/oracle/", FALLBACKS)]
        for role, one in browsers.items()
    }
    sent = {**form_of(row), "do": "save"}
    answers = [
        browsers[role].post(path, sent)
        for role in ("viewer", "operator", "approver")
        for path in paths
    ]

    assert all(links[0] in html for html in seen_by["admin"])
    for role in ("viewer", "operator", "approver"):
        assert not any(link in html for html in seen_by[role] for link in links)
    assert {answer.status_code for answer in answers} == {403}
    assert "Only admins can" in text(page(answers[-1]))


def test_one_that_nobody_has_heard_of_is_registered_by_hand():
    browser = browser_as("admin")
    named = browser.get("/breakers/new/?caller=core&callee=oracle")
    form = browser.get(PATH)
    preview = browser.post(PATH, {"timeout_ms": "5000", "criticality": "medium"}, headers=PREVIEW)
    kept_nothing = not Dependency.objects.exists()

    saved = browser.post(PATH, {"timeout_ms": "5000", "do": "save", "seen": read_seen(browser)})

    assert (named.status_code, named["Location"]) == (302, PATH)
    assert "Register core → oracle" in text(page(form))
    assert 'href="/breakers/core/oracle/"' not in page(form)
    assert "1 change" in text(page(preview))  # The rest is as it is without saying so.
    assert kept_nothing
    assert saved.status_code == 302
    assert Dependency.objects.get().document["timeout_ms"] == 5000
    assert "Registered: core → oracle" in text(page(browser.get(saved["Location"])))
    again = browser.get("/breakers/new/?caller=core&callee=oracle", follow=True)
    assert "is already registered" in text(page(again))


def test_names_in_the_address_of_a_dialog_lead_out_of_it():
    response = browser_as("admin").get(
        "/breakers/new/?caller=core&callee=oracle", headers={"HX-Request": "true"}
    )

    assert (response.status_code, response["HX-Redirect"]) == (200, PATH)


def test_who_registers_by_hand_what_somebody_registers_meanwhile_is_told():
    browser = browser_as("admin")
    opened = read_seen(browser)
    dependency("core->oracle", db_now(), timeout_ms=700)

    response = browser.post(PATH, {"timeout_ms": "5000", "do": "save", "seen": opened})

    assert response.status_code == 409
    assert Dependency.objects.get().document["timeout_ms"] == 700


@pytest.mark.parametrize("name", ["", "Core", "정산", "a" * 61, "core/api", "new<b>"])
def test_names_that_none_can_be_registered_under_are_said(name):
    browser = browser_as("admin")

    response = browser.get("/breakers/new/", {"caller": name, "callee": "oracle"})

    assert response.status_code == 422
    assert "Must be 1 to 60 of the letters" in text(page(response))
    assert Tags(page(response)).value("caller") == name.strip()
    assert browser.get("/breakers/Core/oracle/edit/").status_code == 404
