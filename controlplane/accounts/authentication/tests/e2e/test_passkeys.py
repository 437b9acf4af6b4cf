"""Passkeys in a real browser with a virtual authenticator, and the look of the sign-in pages."""

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from controlplane.accounts.authentication.tests.people import PASSWORD, code, kim, with_app
from controlplane.accounts.models.people import BrowserSession
from controlplane.accounts.people.session_store import SessionStore
from controlplane.core.audit.models import AuditEntry
from controlplane.core.http import confirmation

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]
SECURITY = "/preferences/security/"


def with_authenticator(page: Page) -> None:
    """Add a virtual authenticator that verifies its user."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2", "transport": "internal", "hasResidentKey": True,
        "hasUserVerification": True, "isUserVerified": True,
    }  # fmt: skip
    devtools.send("WebAuthn.addVirtualAuthenticator", {"options": options})


def sign_in(page: Page) -> None:
    page.get_by_label("User name").fill("kim")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()


@pytest.fixture
def page(desks):
    kim()
    desk = desks.open_desk(None)
    desk.context.set_default_timeout(30_000)  # The first page of a cold server, on a busy machine.
    page = desk.open("/sign-in/")
    with_authenticator(page)
    sign_in(page)
    expect(page).to_have_url(f"{desk.url}/")
    page.goto(f"{desk.url}{SECURITY}passkey/")
    page.get_by_label("Name").fill("Laptop")
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.get_by_role("heading", name="Save these recovery codes")).to_be_visible()
    page.get_by_role("link", name="I've saved them").click()
    expect(page.locator(".factors bdi")).to_have_text("Laptop")
    page.root = desk.url
    return page


def sign_out(page: Page) -> None:
    page.context.clear_cookies()
    page.goto(f"{page.root}/sign-in/")


def session_key(page: Page) -> str:
    cookies = {cookie["name"]: cookie["value"] for cookie in page.context.cookies()}
    return cookies.get("sessionid", "")


def test_passkey_signs_in_without_a_password(page):
    sign_out(page)
    page.get_by_role("button", name="Sign in with a passkey").click()

    expect(page).to_have_url(f"{page.root}/")
    assert AuditEntry.objects.filter(action="session.started").count() == 2


@pytest.mark.smoke
def test_code_of_an_app_is_the_second_step(desks):
    secret, _ = with_app(kim())
    desk = desks.open_desk(None)
    desk.context.set_default_timeout(30_000)
    page = desk.open("/sign-in/")
    sign_in(page)
    page.get_by_label("Code", exact=True).fill(code(secret))
    page.keyboard.press("Enter")

    expect(page).to_have_url(f"{desk.url}/")
    expect(page.get_by_role("heading", name="Nothing is engaged")).to_be_visible()


def test_passkey_is_the_second_step_after_a_password(page):
    sign_out(page)
    sign_in(page)
    expect(page).to_have_url(f"{page.root}/sign-in/second/")
    planted = session_key(page)
    page.get_by_role("button", name="Use a passkey").click()

    expect(page).to_have_url(f"{page.root}/")
    assert planted
    assert session_key(page) not in ("", planted)


def test_passkey_confirms_in_the_dialog_and_the_form_opens_there(page):
    for row in BrowserSession.objects.filter(user__username="kim"):
        content = SessionStore().decode(row.session_data) | {confirmation.KEY: 0}
        BrowserSession.objects.filter(pk=row.pk).update(session_data=SessionStore().encode(content))
    page.goto(f"{page.root}/switches/global/all/")
    page.locator("#do-engage").click()
    dialog = page.locator("#dialog")
    expect(dialog.get_by_role("heading", name="Confirm your identity")).to_be_visible()
    dialog.get_by_role("button", name="Use a passkey").click()

    expect(dialog.get_by_label("Reason")).to_be_visible()


LOOKS = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}},
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_pages_fit_and_complain_of_nothing(desks, look, request):
    user = kim()
    desk = desks.open_desk(user, **look)
    folder = os.environ.get("SCREENSHOTS")
    for path in (SECURITY, f"{SECURITY}app/", f"{SECURITY}passkey/", "/confirm/"):
        page = desk.open(path)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        _picture(page, folder, path, request.node.callspec.id)
    desk.open(f"{SECURITY}app/")
    secret = re.sub(r"\s", "", desk.page.locator(".secret").inner_text())
    desk.page.get_by_label("Code from the app").fill(code(secret))
    desk.page.get_by_role("button", name="Add app").click()
    expect(desk.page.locator("ol.tiles li")).to_have_count(10)
    _picture(desk.page, folder, "codes", request.node.callspec.id)
    desk.open(SECURITY)
    _picture(desk.page, folder, "set-up", request.node.callspec.id)
    stranger = desks.open_desk(None, **look)
    page = stranger.open("/sign-in/")
    _picture(page, folder, "sign-in", request.node.callspec.id)
    sign_in(page)
    expect(page.get_by_role("heading", name="Two-step verification")).to_be_visible()
    _picture(page, folder, "second", request.node.callspec.id)


def _picture(page: Page, folder: str | None, name: str, look: str) -> None:
    if folder:
        file = Path(folder) / f"{name.strip('/').replace('/', '-')}.{look}.png"
        page.screenshot(path=str(file), full_page=True)
