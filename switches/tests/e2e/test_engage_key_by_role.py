"""The key `e` for people who can't engage."""

import pytest
from playwright.sync_api import expect

from controlplane.core.http.tests.callers import person
from switches.tests.browsers import engaged

pytestmark = pytest.mark.e2e


def test_e_of_a_viewer_says_why_nothing_opens(desks):
    page = desks.open_desk(person("viewer")).open("/")

    page.keyboard.press("e")

    expect(page.locator("#toasts")).to_contain_text("Only operators engage switches")


def test_e_on_the_page_of_an_engaged_switch_extends_that(desks):
    engaged("feature:nl2sql")
    page = desks.open_desk(person("operator")).open("/switches/feature/nl2sql/")

    page.keyboard.press("e")

    dialog = page.get_by_role("dialog", name="Extend feature:nl2sql")
    expect(dialog).to_be_visible()
    expect(page.locator(".toast")).to_contain_text("This switch is already engaged")
