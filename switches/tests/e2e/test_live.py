"""Live pages: updates, and notices while they can't update."""

import re

import pytest
from playwright.sync_api import expect

from controlplane.core.http.tests.callers import person
from switches.models import Episode
from switches.tests.browsers import engaged

pytestmark = pytest.mark.e2e


def test_change_by_somebody_else_appears_and_disturbs_nothing(desks):
    engaged("segment:mine")
    page = desks.open_desk(person("operator")).open("/")
    search = page.get_by_label("Search id, reason, person, owner")
    search.focus()
    page.evaluate("document.querySelector('#search').marked = true")

    engaged("segment:mine-too", reason="Ledger drifts since 01:00, INC-1")

    expect(page.locator("tr[data-switch='segment:mine-too']")).to_be_visible()
    expect(page.get_by_role("heading", name="2 engaged")).to_be_visible()
    expect(page.locator("#announcer")).to_contain_text("segment:mine-too is engaged")
    expect(search).to_be_focused()
    assert page.evaluate("document.querySelector('#search').marked"), "another element"
    expect(page).to_have_title(re.compile(r"^\(2\)"))


def test_open_dialog_and_its_text_survive_a_refresh(desks):
    engaged("segment:mine")
    page = desks.open_desk(person("operator")).open("/")
    page.keyboard.press("e")
    page.get_by_label("Reason", exact=True).fill("Ledger drifts")

    engaged("feature:other")

    expect(page.locator("tr[data-switch='feature:other']")).to_be_attached()
    expect(page.get_by_label("Reason", exact=True)).to_have_value("Ledger drifts")
    expect(page.get_by_label("Reason", exact=True)).to_be_focused()


def test_focus_in_a_row_stays_on_it_while_rows_move(desks):
    engaged("segment:zz", expires_in="7d")
    page = desks.open_desk(person("operator")).open("/")
    link = page.get_by_role("link", name="Release segment:zz")
    link.focus()

    engaged("segment:aa", expires_in="1h")

    expect(page.locator("tbody tr").first).to_contain_text("segment:aa")
    expect(link).to_be_focused()


def test_search_narrows_as_one_types_and_can_be_shared(desks):
    engaged("segment:finance")
    engaged("feature:mail")
    page = desks.open_desk(person("viewer")).open("/")

    page.keyboard.press("/")
    page.keyboard.type("mail")

    expect(page.locator("tr[data-switch='segment:finance']")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"/\?q=mail$"))
    page.reload()
    expect(page.locator("tbody tr")).to_have_count(1)
    engaged("feature:mailbox")
    expect(page.locator("tbody tr")).to_have_count(2)


def test_lost_connection_is_told_dims_and_mends(desks):
    engaged("segment:finance")
    desk = desks.open_desk(person("viewer"))
    page = desk.open("/")
    expect(page.locator("[data-as-of]")).to_contain_text("As of")

    desk.context.set_offline(True)
    expect(page.locator("[data-as-of]")).to_contain_text("Not current since")
    expect(page.locator("[data-dims]").first).to_have_class(re.compile("is-stale"))
    expect(page.get_by_role("link", name="segment:finance")).to_be_visible()

    desk.context.set_offline(False)
    expect(page.locator("[data-as-of]")).to_contain_text("As of")
    expect(page.locator("[data-dims]").first).not_to_have_class(re.compile("is-stale"))
    # The browser's own messages about being offline are not errors of the page.
    desk.complaints = [text for text in desk.complaints if "ERR_INTERNET" not in text]
    desk.complaints = [text for text in desk.complaints if "htmx:sendError" not in text]


def test_switch_page_follows_what_others_do(desks):
    engaged("segment:finance")
    page = desks.open_desk(person("viewer")).open("/switches/segment/finance/")
    page.locator(".audit-list summary").first.click()

    Episode.objects.update(acknowledged_by="user:lee", acknowledged_at="2026-11-21T02:00:00Z")
    engaged("feature:unrelated")  # any audit row updates the page

    expect(page.get_by_role("region", name="Now")).to_contain_text("lee")
    expect(page.locator(".audit-list details").first).to_have_attribute("open", "")


def test_session_that_ended_leads_to_the_sign_in(desks):
    desk = desks.open_desk(person("viewer"))
    page = desk.open("/")

    desk.context.clear_cookies()

    expect(page).to_have_url(re.compile(r"/sign-in/\?next=%2F$"))
