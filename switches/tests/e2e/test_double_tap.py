"""The second tap of a double tap: it never engages a switch, wherever it lands."""

import pytest
from playwright.sync_api import expect

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from switches.models import Episode
from switches.tests.browsers import REASON, engaged, released
from switches.tests.e2e.tap_guard import PHONE, await_taps, center, tap_twice
from switches.tests.instances import report_checks

pytestmark = pytest.mark.e2e
PAUSES_MS = (120, 250, 450, 700, 1200)


def open_dialog(page):
    page.goto(page.url.partition("#")[0])
    page.get_by_role("link", name="Engage a switch").tap()
    expect(page.get_by_label("Key", exact=True)).to_be_visible()
    await_taps(page)


@pytest.fixture
def phone(desks):
    engaged("segment:finance", reason=REASON)
    released("segment:finance")
    for key in ("nl2sql", "mail", "search", "ontology"):
        report_checks("core/a1", f"feature:{key}", at=db_now(), per_second=3)
    Episode.objects.filter(ended_at=None).delete()
    return desks.open_desk(person("operator"), **PHONE).open("/")


@pytest.mark.parametrize("pause_ms", PAUSES_MS)
def test_double_tap_on_a_suggestion_only_selects(phone, pause_ms):
    open_dialog(phone)
    for link in range(phone.locator(".suggested-switches a").count()):
        open_dialog(phone)
        tap_twice(phone, *center(phone.locator(".suggested-switches a").nth(link)), pause_ms)
        expect(phone.locator("#id_key")).not_to_have_value("")
        reason = phone.locator("#suggested-reasons label").first
        expect(reason).to_be_visible()
        tap_twice(phone, *center(reason), pause_ms)
    phone.wait_for_timeout(300)
    assert not Episode.objects.filter(ended_at=None).exists()


@pytest.mark.parametrize("pause_ms", PAUSES_MS)
def test_double_tap_anywhere_in_the_dialog_never_engages(phone, pause_ms):
    open_dialog(phone)
    for y in range(20, 800, 78):
        for x in (60, 195, 330):
            if not phone.locator("#dialog form[data-engage]").is_visible():
                open_dialog(phone)
            tap_twice(phone, x, y, pause_ms)
        phone.keyboard.press("Escape")  # an open list of scopes; the dialog too
        phone.wait_for_timeout(50)
    assert not Episode.objects.filter(ended_at=None).exists()


@pytest.mark.parametrize("pause_ms", PAUSES_MS)
def test_double_tap_on_engage_neither_undoes_nor_engages_again(phone, pause_ms):
    open_dialog(phone)
    phone.locator("#id_key").fill("nl2sql")
    phone.locator("#id_reason").fill(REASON)
    box = phone.get_by_role("button", name="Engage segment:nl2sql").bounding_box()
    for share in (0.05, 0.5, 0.95):
        tap_twice(phone, box["x"] + share * box["width"], box["y"] + 20, pause_ms)
        if share == 0.05:
            expect(phone.locator("#effect-dialog, #dialog:not([open])").first).to_be_attached()
        phone.wait_for_timeout(1500)
    assert Episode.objects.filter(switch_id="segment:nl2sql").count() == 1
    assert Episode.objects.get(switch_id="segment:nl2sql").ended_at is None


@pytest.mark.parametrize("pause_ms", PAUSES_MS)
def test_double_tap_on_done_does_not_undo(phone, pause_ms):
    open_dialog(phone)
    phone.locator("#id_key").fill("nl2sql")
    phone.locator("#id_reason").fill(REASON)
    phone.get_by_role("button", name="Engage segment:nl2sql").tap()
    done = phone.get_by_role("button", name="Done")
    expect(done).to_be_visible()
    await_taps(phone)
    tap_twice(phone, *center(done), pause_ms)
    phone.wait_for_timeout(500)
    assert Episode.objects.get(switch_id="segment:nl2sql").ended_at is None


def test_enter_held_down_presses_only_once(desks):
    page = desks.open_desk(person("operator")).open("/")
    page.keyboard.press("e")
    page.get_by_label("Key", exact=True).fill("nl2sql")
    page.get_by_label("Reason", exact=True).fill(REASON)
    page.get_by_role("button", name="Engage segment:nl2sql").focus()
    await_taps(page)

    page.keyboard.down("Enter")
    expect(page.get_by_role("button", name="Done")).to_be_focused()
    for _ in range(10):
        page.keyboard.down("Enter")  # repeats
        page.wait_for_timeout(60)

    expect(page.get_by_role("button", name="Done")).to_be_visible()
