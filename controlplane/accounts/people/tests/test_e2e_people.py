"""Tokens and people in a real browser: creation, secrets shown once, and handover."""

import pytest
from playwright.sync_api import expect

from controlplane.accounts.models.people import User
from controlplane.accounts.models.tokens import Token
from controlplane.accounts.tokens import services as tokens
from controlplane.core.http.tests.callers import person, token_text

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]


def test_token_is_made_in_the_dialog_and_shown_once(desks):
    page = desks.open_desk(person("admin", "root")).open("/tokens/")

    page.get_by_role("link", name="Create a token").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("billing")
    dialog.get_by_role("button", name="Create token").click()
    expect(dialog.get_by_text("Choose at least one")).to_be_visible()
    dialog.get_by_label("switches:read").check()
    dialog.get_by_role("button", name="Create token").click()

    expect(dialog.get_by_role("button", name="Copy token")).to_be_visible()
    text = dialog.locator("#token-text").inner_text()
    assert Token.objects.get().prefix == tokens.split_token(text)[0]
    dialog.get_by_role("link", name="I've saved it").click()
    expect(page.get_by_text("billing")).to_be_visible()
    assert text not in page.content()


def test_leaver_is_out_and_their_token_goes_on(desks):
    kim, lee = person("operator", "kim"), person("operator", "lee")
    token_text(kim, ["switches:read"], "billing")
    kims = desks.open_desk(kim).open("/preferences/")
    page = desks.open_desk(person("admin", "root")).open("/people/")

    page.get_by_role("link", name="kim").click()
    page.get_by_role("link", name="Deactivate…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("This token stops")).to_be_visible()
    dialog.get_by_label("Transfer tokens to").select_option("lee (operator)")
    dialog.get_by_role("button", name="Deactivate").click()

    expect(page.get_by_text("Deactivated.", exact=True)).to_be_visible()
    assert Token.objects.get().owner == lee
    assert not User.objects.get(username="kim").is_active
    kims.reload()
    expect(kims.get_by_role("heading", name="Sign in")).to_be_visible()
