"""A browser goes from the inbox to a group, edits a letter, retries the rest and sees it done."""

import pytest
from playwright.sync_api import expect

from breakers.dead_letters.monitoring import indexer
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from controlplane.core.jobs import engine

pytestmark = pytest.mark.e2e

REASON = "oracle is back since 03:10, INC-4411"


@pytest.mark.smoke
def test_letter_is_edited_and_the_rest_of_its_group_retried(desks, letters):
    for number in range(4):
        letters.add(payload=f'{{"total": "{number}"}}', error=f"total of {number} is no number")
    stream = letters.stream()
    indexer.catch_up(stream, db_now())
    page = desks.open_desk(person("operator")).open("/dead-letters/")

    page.get_by_role("link", name=stream.name, exact=True).click()
    expect(page.locator("#live")).to_contain_text("4 letters")
    page.get_by_role("link", name="Look at the letters").click()
    expect(page.locator("[data-letter]").first).to_be_visible()
    page.wait_for_load_state()  # The keys are heard from then on.
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Edit and retry").click()
    page.get_by_label("payload").fill('{"total": 3}')
    page.get_by_label("Reason", exact=True).fill(REASON)
    page.get_by_role("button", name="Retry edited").click()

    expect(page.get_by_text("Its message is back in")).to_be_visible()
    expect(page.locator(".letter-history ins")).to_have_text("3")

    page.get_by_role("link", name="Archive of").click()
    page.get_by_role("link", name="Groups").click()
    page.get_by_role("link", name="Retry all").click()
    dialog = page.locator("#dialog")
    expect(dialog.get_by_role("heading", name="Retry 3 letters")).to_be_visible()
    dialog.get_by_label("Reason", exact=True).fill(REASON)
    dialog.get_by_role("button", name="Retry 3 letters").click()
    expect(page.get_by_role("heading", name="Replay")).to_be_visible()
    for _ in range(3):
        engine.run_tick("dlq.jobs", db_now())

    expect(page.locator("#live")).to_contain_text("3 retried.", timeout=15_000)
    assert letters.redis.xlen(f"{letters.prefix}:events") == 4
    assert letters.redis.xlen(stream.name) == 0


def test_number_of_retries_is_counted_anew_and_what_was_typed_stays(desks, letters):
    letters.fill(2)
    letters.add(dlq_retry_count="3")
    stream = letters.stream()
    indexer.catch_up(stream, db_now())
    page = desks.open_desk(person("operator")).open(
        f"/dead-letters/default/{stream.name}/?tab=messages"
    )
    page.get_by_role("link", name="Retry all").click()
    dialog = page.locator("#dialog")
    expect(dialog.get_by_role("button", name="Retry 2 letters")).to_be_visible()
    dialog.get_by_label("Reason", exact=True).fill(REASON)

    dialog.get_by_label("Leave those retried so often").fill("4")
    dialog.get_by_label("Letters a second").fill("1")
    page.keyboard.press("Tab")

    expect(dialog.get_by_role("heading", name="Retry 3 letters")).to_be_visible()
    expect(dialog.get_by_role("button", name="Retry 3 letters")).to_be_visible()
    expect(dialog).to_contain_text("in about 3 s at 1 a second")
    expect(dialog.get_by_label("Reason", exact=True)).to_have_value(REASON)
    dialog.get_by_role("button", name="Retry 3 letters").click()
    expect(page.get_by_role("heading", name="Replay")).to_be_visible()


@pytest.mark.parametrize("tab", ["groups", "messages", "archive", "gaps"])
def test_phone_page_never_scrolls_sideways(desks, letters, tab):
    letters.add(error="x" * 400, **{"a_rather_long_name_of_a_field" * 5: "y" * 3000})
    stream = letters.stream()
    indexer.catch_up(stream, db_now())
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    desk = desks.open_desk(person("operator"), **phone)

    for path in ("/dead-letters/", f"/dead-letters/default/{stream.name}/?tab={tab}"):
        page = desk.open(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
