"""The emergency page of a real data plane in a real browser, while PostgreSQL is away."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from controlplane.accounts.emergency_codes import services as emergency_codes
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.lines import wait_until
from controlplane.dataplane.tests.test_alone import TOKEN, answers, granian, variables
from controlplane.dataplane.tests.test_following import make_token
from controlplane.tests.browser import Desks
from controlplane.tests.e2e import axe
from switches.tests.browsers import engaged, released

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
NO_SCRIPT = {"java_script_enabled": False}
AWAY = "PostgreSQL does not respond."
REASON = "Errors or timeouts seen at"


@dataclass
class Outage:
    """A data plane whose database went away, and lee's emergency code."""

    url: str
    code: str
    desks: Desks

    def open(self, **options: Any) -> Page:
        return self.desks.open_desk(None, **options).open("/emergency/")

    def blocks(self, switch: str) -> bool:
        snapshot = httpx.get(f"{self.url}/api/v1/snapshot", headers=TOKEN, verify=False).json()
        found = {entry["id"]: entry for entry in snapshot["switches"]}
        return switch in found and found[switch]["state"] == "engaged"


@pytest.fixture
def outage(chromium: Browser, idle: Following, tmp_path: Path) -> Iterator[Outage]:
    make_token()
    engaged("segment:finance", reason="OpenAI 5xx on completions since 02:10, INC-4411")
    for switch in ("feature:chat", "feature:mail"):
        engaged(switch)
        released(switch)
    lee = person("operator", "lee")
    code = emergency_codes.create_code(user=lee, actor=lee.as_actor(), now=db_now())
    environment = {**variables(idle, tmp_path), "ENVIRONMENT_NAME": "production"}
    with granian({**environment, "PLANE_NAME": "dp-1"}) as (_, url):
        wait_until(lambda: answers(url, "/health/ready/data"), 20)
        desks = Desks(chromium, url)
        idle.database.cut()
        wait_until(lambda: AWAY in httpx.get(f"{url}/emergency/", verify=False).text, 10)
        yield Outage(url, code, desks)
        assert desks.close() == []


class Thumb:
    """Taps elements, scrolls to them as a person does, and counts the taps."""

    def __init__(self) -> None:
        self.taps = 0

    def tap(self, target: Locator) -> None:
        target.scroll_into_view_if_needed()
        target.tap()
        self.taps += 1


def fill_in(page: Page, outage: Outage, switch: str) -> None:
    form = page.locator("form").filter(has=page.get_by_role("button", name="Engage", exact=True))
    form.get_by_label("scope and key").fill(switch)
    form.get_by_text(REASON).click()
    form.get_by_label("Your user name").fill("lee")
    form.get_by_label("Your emergency code").fill(outage.code)


def faults_of(page: Page) -> str:
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    faults: axe.Faults = {}
    axe.judge(page, faults)
    return axe.format_faults(faults)


@pytest.mark.smoke
def test_five_taps_and_a_code_stop_a_switch_without_javascript(outage: Outage) -> None:
    page = outage.open(**PHONE, **NO_SCRIPT)
    thumb = Thumb()

    expect(page.get_by_text(AWAY)).to_be_visible()
    thumb.tap(page.get_by_text("feature:chat", exact=True))
    thumb.tap(page.get_by_text(REASON))
    thumb.tap(page.locator("#engage-name"))
    page.keyboard.type("lee")
    thumb.tap(page.locator("#engage-code"))
    page.keyboard.type(outage.code.lower())
    thumb.tap(page.get_by_role("button", name="Engage", exact=True))

    expect(page.get_by_role("heading", name="feature:chat is engaged")).to_be_visible()
    assert thumb.taps <= 5
    assert outage.blocks("feature:chat")
    expect(page.get_by_text("Stored on dp-1").first).to_be_visible()
    page.reload()  # The browser sends the form again.
    expect(page.get_by_role("heading", name="feature:chat is engaged")).to_be_visible()
    expect(page.get_by_text("Ordered by lee")).to_have_count(1)


def test_typed_switch_and_the_key_of_the_keyboard_that_sends(outage: Outage) -> None:
    page = outage.open(**PHONE, **NO_SCRIPT)
    fill_in(page, outage, "experiment:checkout-v3")

    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", name="experiment:checkout-v3 is engaged")).to_be_visible()
    expect(page.get_by_text("No switch experiment:checkout-v3 is registered.")).to_be_visible()
    assert outage.blocks("experiment:checkout-v3")


def test_browser_stops_an_empty_form_before_the_code_is_sent(outage: Outage) -> None:
    page = outage.open(**NO_SCRIPT)

    page.get_by_role("button", name="Engage", exact=True).click()

    expect(page.get_by_role("heading", name="Stop something now")).to_be_visible()
    assert page.locator("#engage-code").evaluate("one => one.validity.valueMissing")


def test_wrong_switch_is_withdrawn_with_one_reason_and_no_second_code(outage: Outage) -> None:
    page = outage.open(**PHONE, **NO_SCRIPT)
    fill_in(page, outage, "feature:mail")
    page.get_by_role("button", name="Engage", exact=True).tap()
    expect(page.get_by_role("heading", name="feature:mail is engaged")).to_be_visible()

    page.get_by_text("Withdraw this order").tap()
    page.get_by_label("Why it may flow again").fill("Wrong switch, meant feature:chat")
    page.get_by_role("button", name="Withdraw the order for feature:mail").tap()

    expect(page.get_by_role("heading", name="is withdrawn")).to_be_visible()
    expect(page.get_by_text("its traffic flows again")).to_be_visible()
    assert not outage.blocks("feature:mail")


def test_everything_is_stopped_in_two_steps(outage: Outage) -> None:
    page = outage.open(**PHONE, **NO_SCRIPT)
    fill_in(page, outage, "global:all")
    page.get_by_role("button", name="Engage", exact=True).tap()
    expect(page.get_by_role("heading", name="Stop all traffic in production?")).to_be_visible()
    assert not outage.blocks("global:all")

    page.get_by_label("Type production or global to confirm").fill("production")
    page.get_by_role("button", name="Stop all traffic").tap()

    expect(page.get_by_role("heading", name="global:all is engaged")).to_be_visible()
    assert outage.blocks("global:all")


@axe.needs_axe
def test_each_state_of_the_page_is_accessible_and_fits_a_phone(outage: Outage) -> None:
    page = outage.open()
    assert faults_of(page) == ""
    page.get_by_label("Your user name").first.fill("nobody")
    fill_in(page, outage, "feature:chat")
    page.locator("#engage-code").fill("WRONG")
    page.get_by_role("button", name="Engage", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was engaged")
    expect(page.get_by_role("alert")).to_be_focused()
    assert faults_of(page) == ""

    page.locator("#engage-code").fill(outage.code)
    page.get_by_role("button", name="Engage", exact=True).click()
    heading = page.get_by_role("heading", name="feature:chat is engaged")
    expect(heading).to_be_focused()
    assert faults_of(page) == ""

    page.goto(f"{outage.url}/emergency/")
    fill_in(page, outage, "global:all")
    page.get_by_role("button", name="Engage", exact=True).click()
    expect(page.get_by_label("to confirm")).to_be_visible()
    assert faults_of(page) == ""

    page.set_viewport_size({"width": 320, "height": 700})
    for path in ("/emergency/", "/"):
        page.goto(f"{outage.url}{path}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.get_by_role("link", name="Stop something now").click()
    expect(page.get_by_role("heading", name="Stop something now")).to_be_visible()
