"""The Django admin of switches, without raw edits of a state."""

import pytest

from controlplane.core.approvals.models import Approval
from controlplane.core.audit.models import AuditEntry
from switches.models import Episode, Switch
from switches.tests.browsers import SAFE_NOW, browser_as, engaged, overdue, page, released

pytestmark = pytest.mark.django_db
SWITCHES = "/admin/switches/switch/"


def act(client, action, *switches, **fields):
    return client.post(
        SWITCHES, {"action": action, "_selected_action": switches, **fields}, follow=True
    )


def test_release_asks_for_the_justification_first():
    engaged()

    response = act(browser_as("admin"), "release", "segment:finance")

    assert "Why it is safe now" in page(response)
    assert Episode.objects.get().ended_at is None


def test_release_goes_through_the_service():
    engaged("segment:finance")
    engaged("feature:mail")

    response = act(
        browser_as("admin"), "release", "segment:finance", "feature:mail", justification=SAFE_NOW
    )

    assert "2 released by ramp" in page(response)
    assert Episode.objects.filter(allow_percent=5).count() == 2
    assert AuditEntry.objects.filter(action="ramp.started", actor_name="a-admin").count() == 2


def test_blank_justification_releases_nothing():
    engaged()

    response = act(browser_as("admin"), "release", "segment:finance", justification=" ")

    assert "A justification is required" in page(response)
    assert Episode.objects.get().ended_at is None


def test_global_release_is_only_asked_for():
    engaged("global:all")

    act(browser_as("admin"), "release", "global:all", justification=SAFE_NOW)

    assert Episode.objects.get().ended_at is None
    assert Approval.objects.get().target == "global:all"


def test_one_that_is_refused_is_told_and_the_others_go_on():
    engaged("segment:finance")
    engaged("segment:done")
    client = browser_as("admin")
    released("segment:done")

    html = page(act(client, "release", "segment:done", "segment:finance", justification=SAFE_NOW))

    assert "segment:done is already released" in html
    assert "1 released" in html


def test_acknowledge_goes_through_the_service():
    overdue("segment:late")

    act(browser_as("admin"), "acknowledge", "segment:late")

    assert Episode.objects.get().acknowledged_by == "user:a-admin"


def test_description_is_edited_through_the_service_and_nothing_else_is():
    engaged()

    browser_as("admin").post(
        f"{SWITCHES}segment:finance/change/",
        {"owner": "payments", "description": "Stops invoicing", "runbook_url": "", "version": 99},
    )

    switch = Switch.objects.get()
    assert (switch.owner, switch.description, switch.version) == ("payments", "Stops invoicing", 1)
    assert AuditEntry.objects.filter(action="registration.changed").exists()


@pytest.mark.parametrize("path", [SWITCHES, "/admin/switches/episode/"])
def test_nothing_is_added_or_deleted_by_hand(path):
    engaged()
    client = browser_as("admin")

    assert client.get(f"{path}add/").status_code == 403
    act(client, "delete_selected", "segment:finance", post="yes")
    assert Switch.objects.count() == Episode.objects.count() == 1


def test_episode_is_history():
    engaged()
    episode = Episode.objects.get()
    client = browser_as("admin")

    client.post(f"/admin/switches/episode/{episode.pk}/change/", {"reason": "never happened"})

    episode.refresh_from_db()
    assert "never happened" not in episode.reason
