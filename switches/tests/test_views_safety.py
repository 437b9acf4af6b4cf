"""Every page under the strict policy: nothing inline, no eval, labeled fields."""

import re
from pathlib import Path

import pytest
from django.conf import settings

from controlplane.core.http.tests.callers import person
from switches.tests.browsers import (
    DIALOG,
    PART,
    SAFE_NOW,
    Tags,
    browser,
    browser_as,
    engaged,
    overdue,
    page,
)

FINANCE = "/switches/segment/finance/"
PAGES = (
    "/",
    "/?state=overdue&q=late",
    "/switchboard/rows/",
    "/alarm/",
    FINANCE,
    "/switches/global/all/",
    f"{FINANCE}effect/",
    f"{FINANCE}effect/?in=dialog",
    f"{FINANCE}callers/",
    f"{FINANCE}calls/",
    f"{FINANCE}release/",
    f"{FINANCE}extend/",
    f"{FINANCE}acknowledge/",
    f"{FINANCE}reconfirm/",
    f"{FINANCE}describe/",
    "/switches/engage/",
    "/approvals/",
    "/rules/",
    "/rules/new/",
    "/audit/",
    "/audit/?action=switch&since=x",
    "/preferences/",
    "/nothing/here/",
    "/admin/",
    "/admin/core/auditentry/",
    "/admin/core/user/",
    "/admin/core/user/add/",
    "/admin/switches/switch/",
    "/admin/switches/switch/segment:finance/change/",
    "/admin/switches/episode/",
)
SIGNED_OUT = ("/sign-in/", "/nothing/here/", "/sign-in/?next=/audit/")


pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def house(module_db):
    """Create some of everything that pages show."""
    engaged("segment:finance")
    overdue("segment:late")
    engaged("global:all")
    kim = browser(person("approver", "ayse"))
    kim.post("/switches/global/all/release/", {"justification": SAFE_NOW})


def assert_nothing_inline(html):
    for tag, attributes in Tags(html).found:
        assert "style" not in attributes, (tag, attributes)
        handlers = [name for name in attributes if name.startswith(("on", "hx-on"))]
        assert not handlers, (tag, handlers)
        assert tag != "style"
        if tag == "script":
            assert attributes.get("src"), "an inline script"
        for name in ("href", "src", "action", "formaction"):
            assert not (attributes.get(name) or "").strip().lower().startswith("javascript:")


def assert_strict(policy):
    assert "unsafe-inline" not in policy
    assert "unsafe-eval" not in policy
    for directive in ("default-src 'none'", "script-src 'self'", "style-src 'self'"):
        assert directive in policy


@pytest.mark.parametrize("path", PAGES)
def test_page_of_an_admin_has_the_policy_and_nothing_inline(house, path):
    response = browser_as("admin").get(path)

    assert response.status_code in {200, 404}
    assert_strict(response["Content-Security-Policy"])
    assert_nothing_inline(page(response))


@pytest.mark.parametrize("path", SIGNED_OUT)
def test_page_of_a_stranger_has_the_policy_and_nothing_inline(client, path):
    response = client.get(path)

    assert_strict(response["Content-Security-Policy"])
    assert_nothing_inline(page(response))


@pytest.mark.parametrize("headers", [PART, DIALOG])
@pytest.mark.parametrize("path", ["/switchboard/rows/", FINANCE, "/switches/engage/"])
def test_part_has_nothing_inline(house, path, headers):
    assert_nothing_inline(page(browser_as("admin").get(path, headers=headers)))


@pytest.mark.parametrize("path", [path for path in PAGES if not path.startswith("/admin/")])
def test_every_field_and_button_has_a_name(house, path):
    html = page(browser_as("admin").get(path))
    tags = Tags(html)
    labelled = {attributes.get("for") for tag, attributes in tags.found if tag == "label"}

    for tag, attributes in tags.found:
        kind = attributes.get("type")
        if tag not in {"input", "select", "textarea"} or kind in {"hidden", "radio", "checkbox"}:
            continue
        assert attributes.get("id") in labelled or attributes.get("aria-hidden"), attributes
    ids = [attributes["id"] for _, attributes in tags.found if "id" in attributes]
    assert len(ids) == len(set(ids)), "an id that is there twice"


@pytest.mark.parametrize("path", ["/", FINANCE, "/approvals/", "/audit/", "/sign-in/"])
def test_page_has_one_main_heading_and_a_language(house, client, path):
    reader = client if path == "/sign-in/" else browser_as("viewer")
    tags = Tags(page(reader.get(path)))

    assert len(tags.having("h1")) == 1
    assert tags.having("html", lang="en")
    assert len(tags.having("main")) == 1


def test_templates_and_scripts_are_written_without_what_the_policy_forbids():
    root = Path(settings.BASE_DIR)
    templates = list((root / "templates").rglob("*.html"))
    scripts = list((root / "static/js").glob("*.js"))
    assert templates
    assert scripts

    for template in templates:
        text = template.read_text()
        assert not re.search(r"\sstyle=|<style|\son[a-z]+=|hx-on|javascript:", text), template
        assert not re.search(r"<script(?![^>]*\bsrc=)", text), template
        assert "|safe" not in text, template
        assert "autoescape off" not in text, template
    for script in scripts:
        text = script.read_text()
        assert not re.search(r"\beval\(|new Function|innerHTML|document\.write", text), script
