"""axe-core on pages without incoming links: sign-in, and secrets that are shown once."""

import re
from dataclasses import replace

import pytest
from django.test import Client
from playwright.sync_api import Page, expect

from controlplane.accounts.authentication import resets
from controlplane.accounts.authentication.tests.people import PASSWORD, code, kim, with_app
from controlplane.core.http.tests.callers import person
from controlplane.tests.e2e import axe

pytestmark = [pytest.mark.e2e, axe.needs_axe]
SECURITY = "/preferences/security/"


def faults_of(page: Page) -> str:
    page.wait_for_load_state()
    faults: axe.Faults = {}
    axe.judge(page, faults)
    return axe.format_faults(faults)


def sign_in(page: Page, password: str = PASSWORD) -> None:
    page.get_by_label("User name").fill("kim")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in", exact=True).click()


def test_token_and_link_that_are_shown_once(desks):
    lee = person("operator", "lee")
    page = desks.open_desk(person("admin", "root")).open("/tokens/new/")

    page.get_by_role("button", name="Create token").click()
    expect(page.get_by_text("Choose at least one")).to_be_visible()
    assert faults_of(page) == ""
    page.get_by_label("Name").fill("billing")
    page.get_by_label("switches:read").check()
    page.get_by_role("button", name="Create token").click()
    expect(page.locator("#token-text")).to_be_visible()
    assert faults_of(page) == ""

    page.goto(f"{page.url.split('/tokens/')[0]}/people/{lee.pk}/")
    page.get_by_role("button", name="Create password link").click()
    expect(page.locator("#shown-once")).to_be_visible()
    assert faults_of(page) == ""


def test_setting_up_an_app_and_confirming_with_it(desks):
    desk = desks.open_desk(kim())

    page = desk.open(f"{SECURITY}app/")
    assert faults_of(page) == ""
    secret = re.sub(r"\s", "", page.locator(".secret").inner_text())
    page.get_by_label("Code from the app").fill("000")
    page.get_by_role("button", name="Add app").click()
    expect(page.locator("[aria-invalid='true']")).to_be_visible()
    assert faults_of(page) == ""
    page.get_by_label("Code from the app").fill(code(secret))
    page.get_by_role("button", name="Add app").click()
    expect(page.locator("ol.tiles li")).to_have_count(10)
    assert faults_of(page) == ""

    for path in (SECURITY, f"{SECURITY}passkey/", "/confirm/"):
        assert faults_of(desk.open(path)) == "", path


def test_coming_in_by_two_steps(desks):
    with_app(kim())
    page = desks.open_desk(None).open("/sign-in/")

    sign_in(page, "not mine")
    expect(page.get_by_role("alert")).to_be_visible()
    assert faults_of(page) == ""
    sign_in(page)
    expect(page.get_by_role("heading", name="Two-step verification")).to_be_visible()
    assert faults_of(page) == ""
    page.get_by_label("Code", exact=True).fill("000000")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_be_visible()
    assert faults_of(page) == ""


def test_password_that_must_be_changed(desks):
    user = kim()
    user.must_change_password = True
    user.save()
    page = desks.open_desk(None).open("/sign-in/")

    sign_in(page)
    expect(page.get_by_role("heading", name="Choose a new password")).to_be_visible()
    assert faults_of(page) == ""
    page.get_by_label("New password", exact=True).fill("1")
    page.get_by_label("Repeat new password").fill("2")
    page.get_by_role("button", name="Set password").click()
    expect(page.locator(".field__error").first).to_be_visible()
    assert faults_of(page) == ""


def test_password_that_was_forgotten(desks, settings):
    settings.EMAIL = replace(settings.EMAIL, host="127.0.0.1")
    path = resets.build_path(kim(email="kim@example.org"))
    desk = desks.open_desk(None)

    assert faults_of(desk.open("/sign-in/forgotten/")) == ""
    page = desk.open(path)
    expect(page.get_by_role("heading", name="New password")).to_be_visible()
    assert faults_of(page) == ""
    page.get_by_label("New password", exact=True).fill("123")
    page.get_by_label("Repeat new password").fill("124")
    page.get_by_role("button", name="Set password").click()
    expect(page.locator("[aria-invalid='true']").first).to_be_visible()
    assert faults_of(page) == ""
    assert faults_of(desk.open("/sign-in/reset/MQ/no-such-token/")) == ""


def test_whoever_tried_too_often_is_told_when_to_come_back(desks):
    kim()
    for _ in range(12):
        Client().post("/sign-in/", {"username": "kim", "password": "guess"})
    page = desks.open_desk(None).open("/sign-in/")

    sign_in(page)

    expect(page.get_by_role("heading", name=re.compile("^Wait"))).to_be_visible()
    assert faults_of(page) == ""


@pytest.mark.parametrize("path", ["/api/docs/", "/api/docs/switches/"])
def test_api_reference(desks, path):
    page = desks.open_desk(kim()).open(path)

    assert faults_of(page) == ""
