"""An admin sends a test message and sees in the dialog whether it was delivered."""

import pytest
from playwright.sync_api import expect

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.delivery.tests.message_samples import hook

pytestmark = pytest.mark.e2e


def test_outcome_of_a_test_message_appears_in_its_dialog(desks):
    hook("ops-hook")
    page = desks.open_desk(person("admin")).open("/targets/")

    page.get_by_role("button", name="Send test message to ops-hook").click()
    dialog = page.locator("#dialog")
    expect(dialog.get_by_role("heading")).to_have_text("Test message to ops-hook")
    expect(dialog).to_contain_text("Delivered to 0 of 1 destination. Waiting: 1")
    OutboxMessage.objects.update(state="failed", last_error="HTTP 404", finished_at=db_now())

    expect(dialog).to_contain_text("Delivered to 0 of 1 destination. Failed: 1", timeout=8_000)
    expect(dialog).to_contain_text("HTTP 404")
    dialog.get_by_role("button", name="Done").click()
    page.get_by_role("button", name="Send test message to ops-hook").click()
    expect(dialog).to_contain_text("Try again in")


def test_channel_form_has_only_the_fields_of_its_transport(desks):
    page = desks.open_desk(person("admin")).open("/targets/")
    page.get_by_role("link", name="Add a channel").click()
    dialog = page.locator("#dialog")
    expect(dialog.get_by_label("Address")).to_be_visible()
    expect(dialog.get_by_label("URL of the webhook")).to_have_count(0)

    dialog.get_by_role("link", name="Webhook").click()

    expect(dialog.get_by_label("URL of the webhook")).to_be_visible()
    expect(dialog.get_by_label("Address")).to_have_count(0)
