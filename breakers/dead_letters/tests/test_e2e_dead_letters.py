"""A browser goes from the inbox to a group, edits a letter, retries the rest and sees it done."""

import pytest
from playwright.sync_api import expect

from breakers.dead_letters.bulk import replays
from breakers.dead_letters.letters.filters import LetterFilter
from breakers.dead_letters.monitoring import indexer
from breakers.tests.registered import OPERATOR
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
    page.get_by_role("link", name="View letters").click()
    expect(page.locator("[data-letter]").first).to_be_visible()
    page.wait_for_load_state()  # The keys are heard from then on.
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Edit and retry").click()
    page.get_by_label("payload").fill('{"total": 3}')
    page.get_by_label("Reason", exact=True).fill(REASON)
    page.get_by_role("button", name="Retry edited").click()

    expect(page.get_by_text("It has not failed again so far")).to_be_visible()
    expect(page.locator(".letter-history ins")).to_have_text("3")

    page.get_by_role("link", name="Archive of").click()
    page.get_by_role("link", name="Groups").click()
    page.get_by_role("link", name="Retry all").click()
    dialog = page.locator("#dialog")
    expect(dialog.get_by_role("heading", name="Retry 3 letters")).to_be_visible()
    dialog.get_by_label("Reason", exact=True).fill(REASON)
    dialog.get_by_role("button", name="Retry 3 letters").click()
    expect(page.get_by_role("heading", name="Retry job")).to_be_visible()
    for _ in range(3):
        engine.run_tick("dlq.jobs", db_now())

    expect(page.locator("#live")).to_contain_text("Sent", timeout=15_000)
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
    page.get_by_label("Select all 3 in the stream").check()
    page.get_by_role("button", name="Retry", exact=True).click()
    dialog = page.locator("#dialog")
    expect(dialog.get_by_role("button", name="Retry 2 letters")).to_be_visible()
    dialog.get_by_label("Reason", exact=True).fill(REASON)

    dialog.get_by_label("Skip letters retried this often").fill("4")
    dialog.get_by_label("Letters per second").fill("1")
    page.keyboard.press("Tab")

    expect(dialog.get_by_role("heading", name="Retry 3 letters")).to_be_visible()
    expect(dialog.get_by_role("button", name="Retry 3 letters")).to_be_visible()
    expect(dialog).to_contain_text("in about 3 s at 1 a second")
    expect(dialog.get_by_label("Reason", exact=True)).to_have_value(REASON)
    expect(page.locator("html:not([data-taps-ignored])")).to_be_attached()
    dialog.get_by_role("button", name="Retry 3 letters").click()
    expect(page.get_by_role("heading", name="Retry job")).to_be_visible()


def test_edit_cannot_be_started_before_its_own_preview_arrived(desks, letters):
    letters.add(id="1-0", payload='{"order": 1, "currency": "US"}')
    stream = letters.stream()
    indexer.catch_up(stream, db_now())
    page = desks.open_desk(person("operator")).open(
        f"/dead-letters/default/-/bulk/{stream.name}/?action=edit"
    )
    page.route("**/bulk/**", lambda route: None)
    page.get_by_label("Field, or path").fill("payload.currency")
    page.get_by_label("New value").fill("USD")

    page.get_by_label("Reason", exact=True).fill(REASON)

    button = page.locator("#do-bulk")
    expect(button).to_be_disabled()
    page.unroute("**/bulk/**")  # lets the held requests continue
    expect(page.locator(".diff ins")).to_have_text('"USD"')
    expect(button).to_be_enabled()
    expect(button).to_have_text("Edit and retry 1 letter")


def test_selected_letters_are_edited_together_after_a_preview(desks, letters):
    for number in range(1, 6):
        letters.add(id=f"{number}-0", payload=f'{{"order": {number}, "currency": "US"}}')
    stream = letters.stream()
    indexer.catch_up(stream, db_now())
    page = desks.open_desk(person("operator")).open(
        f"/dead-letters/default/{stream.name}/?tab=messages"
    )
    expect(page.locator("#selected-count")).to_have_text("0 selected")
    expect(page.get_by_role("button", name="Edit and retry")).to_be_disabled()

    for number in (1, 2, 3, 4):
        page.get_by_label(f"Select {number}-0").check()
    expect(page.locator("#selected-count")).to_have_text("4 selected")
    page.get_by_role("button", name="Edit and retry").click()
    dialog = page.locator("#dialog")
    dialog.get_by_label("Operation").select_option("set")
    dialog.get_by_label("Field, or path").fill("payload.currency")
    dialog.get_by_label("New value").fill("USD")
    dialog.get_by_label("Reason", exact=True).fill(REASON)

    expect(dialog.locator(".diff ins")).to_have_text(['"USD"'] * 3)
    expect(page.locator("html:not([data-taps-ignored])")).to_be_attached()
    dialog.get_by_role("button", name="Edit and retry 4 letters").click()
    expect(page.get_by_role("heading", name="Retry job")).to_be_visible()
    for _ in range(3):
        engine.run_tick("dlq.jobs", db_now())
    sent = letters.redis.xrange(f"{letters.prefix}:events")
    assert [b'"USD"' in fields[b"payload"] for _, fields in sent] == [True] * 4
    assert letters.redis.xlen(stream.name) == 1


def test_job_page_and_jobs_list_turn_red_when_letters_fail_again(desks, letters):
    letters.fill(5)
    stream = letters.stream()
    indexer.catch_up(stream, db_now())
    job = replays.request_replay(
        stream=stream,
        action="retry",
        chosen=LetterFilter(),
        rate_per_second=1000.0,
        reason=REASON,
        actor=OPERATOR,
        now=db_now(),
    )
    for _ in range(3):
        engine.run_tick("dlq.jobs", db_now())
    page = desks.open_desk(person("operator")).open(f"/dead-letters/jobs/{job.pk}/")
    expect(page.locator(".switch-head__title")).to_contain_text("Sent")

    for _, fields in letters.redis.xrange(f"{letters.prefix}:events"):
        letters.redis.xadd(stream.name, {**fields, "dlq_error": "again"})

    expect(page.locator(".note--stop")).to_contain_text("5 sent, 5 failed again", timeout=8_000)
    expect(page.locator(".switch-head__title")).to_contain_text("All failed again")

    page.goto(page.url.partition("/dead-letters/")[0] + "/jobs/")
    line = page.locator(f"#job-{job.pk}")
    expect(line).to_contain_text("All failed again")
    expect(line).to_contain_text("5 sent, 5 failed again")
    expect(line).not_to_contain_text("Completed")


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
