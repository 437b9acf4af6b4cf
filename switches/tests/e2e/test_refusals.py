"""A refusal in the dialog says who may do it, and leads to asking them."""

import pytest
from playwright.sync_api import expect

from controlplane.core.approvals.models import Approval
from switches.tests.browsers import REASON, engaged
from switches.tests.teams import CHAT, People

pytestmark = pytest.mark.e2e


def test_refusal_in_the_dialog_leads_to_a_request(desks):
    people = People()
    engaged(CHAT)
    ramp = people.api("member").post(
        f"/switches/{CHAT.replace(':', '/')}/release", {"justification": REASON}
    )
    path = f"/ramps/{ramp.json()['ramp']['id']}/"
    page = desks.open_desk(people.stranger).open(path)

    page.evaluate(
        "path => document.dispatchEvent(new CustomEvent('switchgear:open', {detail: {path}}))",
        f"{path}advance/",
    )
    dialog = page.locator("#dialog-body")
    expect(dialog).to_contain_text("Only its members may release it at once.")
    dialog.get_by_role("link", name="Ask for permission…").click()
    dialog.get_by_label("Reason").fill("5xx below 0.1 % for twenty minutes")
    dialog.get_by_role("button", name="Ask", exact=True).click()

    expect(page.locator("dialog#dialog")).not_to_be_visible()
    assert Approval.objects.get(kind="grant").requester == people.stranger
