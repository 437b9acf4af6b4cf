"""A first password in a real browser: shown by an admin, replaced by its person."""

import pytest
from playwright.sync_api import expect

from controlplane.accounts.models.people import User
from controlplane.core.http.tests.callers import person

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]
NEW = "another-fine-secret-4"


def test_new_person_chooses_a_password_and_goes_on(desks):
    page = desks.open_desk(person("admin", "root")).open("/people/new/")
    page.get_by_label("User name").fill("kim")
    page.get_by_role("button", name="Add person").click()
    first = page.locator("#shown-once").inner_text()
    desk = desks.open_desk(None)

    kims = desk.open("/audit/")
    kims.get_by_label("User name").fill("kim")
    kims.get_by_label("Password").fill(first)
    kims.get_by_role("button", name="Sign in", exact=True).click()
    expect(kims.get_by_role("heading", name="Choose a new password")).to_be_visible()
    kims.get_by_label("New password", exact=True).fill(first)
    kims.get_by_label("Repeat new password").fill(first)
    kims.get_by_role("button", name="Set password").click()
    expect(kims.get_by_text("This is the password you were given.")).to_be_visible()
    kims.get_by_label("New password", exact=True).fill(NEW)
    kims.get_by_label("Repeat new password").fill(NEW)
    kims.keyboard.press("Enter")

    expect(kims).to_have_url(f"{desk.url}/audit/")
    kim = User.objects.get(username="kim")
    assert kim.check_password(NEW)
    assert not kim.must_change_password
