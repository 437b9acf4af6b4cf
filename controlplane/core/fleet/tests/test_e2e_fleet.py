"""The page *Fleet* in a browser: found by key, and refreshed by itself."""

import pytest
from playwright.sync_api import expect

from controlplane.core.clock import db_now
from controlplane.core.fleet.tests.rows import create_process, publish
from controlplane.core.http.tests.callers import person

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]


def test_page_is_found_by_key_and_shows_a_relay_that_lags_by_itself(desks):
    publish(db_now())
    create_process("dp-1", db_now())
    page = desks.open_desk(person("viewer")).open("/jobs/")
    expect(page.locator("h1")).to_have_text("Jobs")

    page.keyboard.press("g")
    page.keyboard.press("f")
    expect(page.locator("h1")).to_have_text("All up to date")
    create_process("eu-1", db_now(), upstream="dp-1", age_seconds=42.0)

    expect(page.locator("h1")).to_contain_text("1 lagging", timeout=12_000)
    expect(page.locator("#fleet-eu-1")).to_contain_text("dp-1")
