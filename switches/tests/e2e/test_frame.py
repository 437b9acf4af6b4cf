"""The frame of every page: phone, dark mode, keyboard, menu and strict policy."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from switches.tests.browsers import engaged, overdue
from switches.tests.instances import report_checks, report_version

pytestmark = pytest.mark.e2e
LONG_KEY = "a-key-of-the-full-length." * 4 + "x" * 20
PAGES = (
    "/",
    "/switches/segment/finance/",
    f"/switches/feature/{LONG_KEY}/",
    "/switches/engage/",
    "/switches/segment/finance/release/",
    "/switches/segment/finance/extend/",
    "/attention/",
    "/approvals/",
    "/reports/weekly/",
    "/rules/",
    "/trips/",
    "/targets/",
    "/deliveries/",
    "/audit/",
    "/preferences/",
    "/nothing/here/",
)


@pytest.fixture
def busy(transactional_db):
    """Create long keys, reasons and names, other scripts, and a global stop."""
    engaged("segment:finance", reason="결제 이중 청구 의심, 재현 확인됨 INC-4411")
    engaged(f"feature:{LONG_KEY}", reason="W" * 1990 + " INC-9")
    engaged("feature:ar", reason="ارتفاع معدل الأخطاء في خدمة الدفع منذ الساعة 02:10")
    overdue("segment:late")
    engaged("global:all")
    long_name = f"{'a-service-' * 12}/{'i' * 120}"
    report_checks(long_name, "segment:finance", at=db_now(), per_second=12_000)
    report_version(long_name, 0, db_now())
    report_version(f"{long_name[:-1]}2", 1, db_now() - timedelta(seconds=60))


@pytest.mark.smoke
@pytest.mark.parametrize("width", [320, 390])
def test_phone_never_scrolls_sideways(desks, busy, width):
    desk = desks.open_desk(
        person("admin"),
        viewport={"width": width, "height": 700},
        is_mobile=True,
        has_touch=True,
    )

    for path in PAGES:
        page = desk.open(path)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{path} is {wide} wide"


def test_time_left_in_the_red_bar_is_not_red(desks):
    engaged("global:all", expires_in="9m")
    page = desks.open_desk(person("viewer")).open("/")
    countdown = page.locator(".alarm [data-until]")
    expect(countdown).to_have_class(re.compile("countdown--soon"))

    colours = page.evaluate(
        "['.alarm', '.alarm [data-until]']"
        ".map((part) => getComputedStyle(document.querySelector(part)).color)"
    )

    assert colours[0] == colours[1]


@pytest.mark.parametrize(("width", "height"), [(390, 800), (320, 568)])
def test_phone_kills_in_three_taps_and_the_words(desks, width, height):
    for number in range(9):
        report_version(f"core/a{number}", 0, db_now())
    page = desks.open_desk(
        person("operator"),
        viewport={"width": width, "height": height},
        is_mobile=True,
        has_touch=True,
    ).open("/")

    page.get_by_role("link", name="Engage a switch").tap()
    page.get_by_label("Key", exact=True).fill("finance")
    page.get_by_label("Reason", exact=True).fill("OpenAI 5xx on completions since 02:10")
    page.get_by_role("button", name="Engage segment:finance").tap()
    expect(page.locator("#effect-dialog-said")).to_be_in_viewport(ratio=1)
    page.get_by_role("button", name="Done").tap()

    expect(page.locator("tr[data-switch='segment:finance']")).to_contain_text("Engaged")


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_theme_follows_the_system_and_then_the_person(desks):
    desk = desks.open_desk(person("viewer"), color_scheme="dark")
    page = desk.open("/")
    assert background(page) == "rgb(13, 16, 21)"

    page.locator("[data-menu] summary").click()
    page.get_by_role("button", name="Light").click()
    assert background(page) == "rgb(246, 247, 249)"

    page.reload()
    assert background(page) == "rgb(246, 247, 249)"
    assert background(desk.open("/audit/")) == "rgb(246, 247, 249)"


def test_keys_lead_through_the_console_and_can_be_turned_off(desks):
    page = desks.open_desk(person("operator")).open("/")

    page.keyboard.press("g")
    page.keyboard.press("a")
    expect(page.get_by_role("heading", name="Audit", exact=True)).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("s")
    expect(page.get_by_role("heading", name="Nothing is engaged")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Engage a switch")

    page.get_by_label("Use single-key shortcuts").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("e")
    page.wait_for_timeout(400)
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_keys_are_text_where_somebody_types(desks):
    page = desks.open_desk(person("operator")).open("/audit/")

    page.keyboard.press("/")
    page.keyboard.type("engage")

    expect(page.get_by_label("Search reason, target or actor")).to_have_value("engage")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_skip_link_is_first_and_leads_to_the_content(desks):
    page = desks.open_desk(person("viewer")).open("/audit/")

    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")

    expect(page.locator("#main")).to_be_focused()


def test_admin_verifies_the_chain_and_signs_out_from_the_menu(desks):
    engaged("segment:finance")
    page = desks.open_desk(person("admin")).open("/audit/")

    page.get_by_role("button", name="Verify the chain").click()
    expect(page.get_by_role("heading", name="The audit chain is intact")).to_be_visible()
    page.keyboard.press("Escape")
    page.locator("[data-menu] summary").click()
    page.get_by_role("button", name="Sign out").click()

    expect(page.get_by_text("Signed out.")).to_be_visible()


def test_django_admin_works_under_the_policy(desks, busy):
    desk = desks.open_desk(person("admin"))

    for path in (
        "/admin/",
        "/admin/switches/switch/",
        "/admin/switches/switch/segment:finance/change/",
        "/admin/core/user/add/",
        "/admin/core/auditentry/",
    ):
        page = desk.open(path)
        expect(page.locator(".environment")).to_be_visible()
        expect(page.locator("#content")).to_be_visible()
    page = desk.open("/admin/switches/switch/")
    page.locator("#action-toggle").check()
    expect(page.locator(".action-counter")).to_contain_text("5 of 5 selected")
