"""Undo, offered for thirty seconds without blocking anything."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from switches.models import Episode
from switches.tests.browsers import REASON, SAFE_NOW, engaged

pytestmark = pytest.mark.e2e
AWAY = 20_000  # ms to another page, on a machine that has other things to do


def engage(page, key="finance"):
    """Engage a segment from the board and close the result."""
    page.keyboard.press("e")
    page.get_by_label("Key", exact=True).fill(key)
    page.get_by_label("Reason", exact=True).fill(REASON)
    page.get_by_role("button", name=f"Engage segment:{key}").click()
    page.get_by_role("button", name="Done").click()
    expect(page.get_by_role("dialog")).to_be_hidden()


def toast(page):
    return page.locator("[data-undo-toast]")


def test_z_takes_back_what_was_just_engaged(desks):
    page = desks.open_desk(person("operator")).open("/")
    engage(page)
    expect(toast(page)).to_contain_text("segment:finance is engaged.")
    expect(toast(page)).to_contain_text(re.compile(r"\d+ s"))
    expect(page.get_by_role("link", name="Engage a switch")).to_be_focused()

    page.keyboard.press("z")

    expect(page.locator("#toasts")).to_contain_text("Undone: segment:finance is released")
    expect(toast(page)).to_have_count(0)
    assert Episode.objects.get().ended_how == "undone"


def test_release_takes_the_offer_back(desks):
    page = desks.open_desk(person("operator")).open("/")
    engage(page)
    expect(toast(page)).to_contain_text("segment:finance is engaged.")

    page.locator("tr[data-switch='segment:finance']").get_by_role("link", name="Release").click()
    page.get_by_label("Why it is safe now").fill("Vendor reports recovery, errors below 0.1 %")
    page.get_by_role("button", name="Start ramp of segment:finance").click()

    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(toast(page)).to_have_count(0)


def test_z_works_while_the_dialog_still_tells_of_it(desks):
    page = desks.open_desk(person("operator")).open("/")
    page.keyboard.press("e")
    page.get_by_label("Key", exact=True).fill("finance")
    page.get_by_label("Reason", exact=True).fill("zzz " + REASON)  # in the field, z is a letter
    page.get_by_role("button", name="Engage segment:finance").click()
    expect(page.get_by_role("button", name="Done")).to_be_focused()

    page.keyboard.press("z")

    expect(page.locator("#toasts")).to_contain_text("Undone: segment:finance")
    expect(toast(page)).to_have_count(0)


def test_it_can_be_pressed_in_the_moment_it_is_there(desks):
    """The button works in the moment it is shown, without another page load."""
    page = desks.open_desk(person("operator")).open("/")
    page.evaluate("""() => {
      window.stays = true;
      const press = () => document.querySelector("#dialog form[data-undo] button")?.click();
      const body = document.getElementById("dialog-body");
      new MutationObserver(press).observe(body, {childList: true});
    }""")
    page.keyboard.press("e")
    page.get_by_label("Key", exact=True).fill("finance")
    page.get_by_label("Reason", exact=True).fill(REASON)
    page.get_by_role("button", name="Engage segment:finance").click()

    expect(page.locator("#toasts")).to_contain_text("Undone: segment:finance is released")
    expect(toast(page)).to_have_count(0)
    assert page.evaluate("window.stays")


def test_who_has_sent_it_away_is_not_asked_again(desks):
    page = desks.open_desk(person("operator")).open("/")
    engage(page)
    toast(page).get_by_role("button", name="Dismiss").click()

    page.keyboard.press("e")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()

    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(toast(page)).to_have_count(0)


def test_it_goes_along_to_another_page(desks):
    page = desks.open_desk(person("operator")).open("/")
    engage(page)

    page.get_by_role("link", name="Runbooks").click()
    expect(page).to_have_url(re.compile("/runbooks/"), timeout=AWAY)
    toast(page).get_by_role("button", name="Undo engaging segment:finance").click()

    expect(page.locator("#toasts")).to_contain_text("Undone: segment:finance")


def test_when_its_time_is_up_it_leads_to_the_release(desks):
    desk = desks.open_desk(person("operator"))
    page = desk.open("/")
    page.clock.install()
    engage(page)
    expect(toast(page)).to_be_visible()

    page.clock.fast_forward(timedelta(seconds=31).total_seconds() * 1000)

    expect(toast(page)).to_contain_text("segment:finance stays engaged")
    expect(toast(page).get_by_role("button", name=re.compile("^Undo"))).to_be_hidden()
    toast(page).get_by_role("link", name="Release").click()
    expect(page.get_by_label("Why it is safe now")).to_be_visible()


def test_what_is_pointed_at_stays(desks):
    page = desks.open_desk(person("operator")).open("/")
    page.clock.install()
    page.evaluate(
        "document.dispatchEvent(new CustomEvent('switchgear:toast', {detail: {message: 'Look'}}))"
    )
    toast = page.locator("#toasts .toast")
    toast.hover()

    page.clock.fast_forward(60_000)
    expect(toast).to_be_visible()
    page.mouse.move(5, 5)
    page.clock.fast_forward(10_000)

    expect(toast).to_have_count(0)


def test_z_takes_back_the_newest_also_when_it_was_engaged_on_a_page_of_its_own(desks):
    kim = engaged("segment:finance", now=db_now() - timedelta(seconds=4))
    page = desks.open_desk(kim).open("/switches/segment/finance/")
    page.goto(page.url.replace("/segment/finance/", "/engage/"))
    expect(toast(page)).to_contain_text("segment:finance is engaged.")
    page.get_by_label("Key", exact=True).fill("ledger")
    page.get_by_label("Reason", exact=True).fill(REASON)
    page.get_by_role("button", name="Engage segment:ledger").click()
    expect(page).to_have_url(re.compile("/switches/segment/ledger/"), timeout=AWAY)
    page.wait_for_load_state()

    page.keyboard.press("z")

    expect(page.locator("#toasts")).to_contain_text("Undone: segment:ledger")
    assert Episode.objects.get(ended_at__isnull=False).switch_id == "segment:ledger"


def test_z_for_an_older_one_says_what_was_engaged_after_it_and_undoes_nothing(desks):
    kim = engaged("segment:finance", now=db_now() - timedelta(seconds=5))
    page = desks.open_desk(kim).open("/switches/segment/finance/")
    engaged("segment:ledger", by=kim)  # in another window

    page.keyboard.press("z")

    expect(page.get_by_role("dialog")).to_contain_text("You engaged segment:ledger after")
    assert not Episode.objects.filter(ended_at__isnull=False).exists()


@pytest.mark.parametrize("path", ["", "release/"], ids=["in the dialog", "on a page"])
def test_released_switch_offers_no_undo_of_its_engagement(desks, path):
    kim = engaged("feature:mail")
    page = desks.open_desk(kim).open("/switches/feature/mail/")
    if path:
        page.goto(f"{page.url}{path}")
        expect(toast(page)).to_contain_text("feature:mail is engaged.")
    else:
        page.locator("#do-release").click()
    page.get_by_label("Why it is safe now").fill(SAFE_NOW)
    page.get_by_role("button", name="Start ramp of feature:mail").click()
    expect(page.locator(".ramp__figure")).to_have_text("5 %")
    page.wait_for_timeout(500)  # A part that still shows the undo may be refreshed.

    expect(toast(page)).to_have_count(0)


def test_request_to_release_leaves_the_offer(desks):
    desk = desks.open_desk(engaged("global:all"))
    desk.open("/switches/global/all/")
    page = desk.open("/")
    expect(toast(page)).to_contain_text("global:all is engaged.")

    page.locator("tr[data-switch='global:all']").get_by_role("link", name="Release").click()
    page.get_by_label("Why it is safe now").fill(SAFE_NOW)
    page.get_by_role("button", name="Request release by ramp").click()

    expect(page.locator("#toasts")).to_contain_text("Approval requested to release global:all")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(toast(page)).to_contain_text("global:all is engaged.")
    assert not Episode.objects.filter(ended_at__isnull=False).exists()


def test_page_with_its_own_undo_shows_no_second_one(desks):
    kim = engaged("segment:finance")
    page = desks.open_desk(kim).open("/switches/segment/finance/")

    expect(page.get_by_role("button", name=re.compile("^Undo"))).to_have_count(1)
    page.get_by_role("link", name="Runbooks").click()

    expect(page).to_have_url(re.compile("/runbooks/"), timeout=AWAY)
    expect(toast(page)).to_contain_text("segment:finance is engaged.")


@pytest.mark.parametrize("size", [(1280, 800), (390, 844)])
def test_toast_covers_no_button_of_the_next_form_and_names_it_in_one_line(desks, size):
    kim = engaged("segment:" + "x" * 110)
    desk = desks.open_desk(kim)
    page = desk.open(f"/switches/segment/{'x' * 110}/")
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto(f"{desk.url}/switches/engage/")
    expect(toast(page)).to_be_visible()

    bar = page.locator("#toasts").bounding_box()
    button = page.locator("main .form-foot .button--stop").bounding_box()

    assert bar["height"] < 140
    undo = toast(page).get_by_role("button", name=re.compile("^Undo")).bounding_box()
    assert undo["x"] >= 0
    assert undo["x"] + undo["width"] <= size[0]
    assert button["y"] + button["height"] <= bar["y"]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
