"""Discarding failed messages: they stay on record and need no more action."""

import json
from datetime import timedelta

import pytest

from controlplane.core import ticks
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import as_role, person, signed_in, with_token
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.delivery import attention, claims, report_sections, selection

from .message_samples import create_message, route_to_hook

pytestmark = pytest.mark.django_db
WHY = {"reason": "the webhook was removed"}


def test_a_discarded_message_waits_for_nobody_and_stays_on_record():
    route_to_hook()
    message = create_message("failed", "webhook:999", severity="critical")
    assert attention.list_undelivered_messages(db_now())

    response = as_role("operator").post(f"/deliveries/{message.pk}/discard", WHY)

    assert (response.status_code, response.json()["state"]) == (200, "failed")
    assert response.json()["discarded_at"]
    assert response.json()["discarded_by"] == "user:a-operator"
    assert attention.list_undelivered_messages(db_now()) == []
    assert selection.count_messages()["failed"] == 0
    day = timedelta(days=1)
    week = report_sections.deliveries_section(db_now() - day, db_now() + day, db_now())
    assert week.tone == "good"
    entry = AuditEntry.objects.get(action="outbox.discarded")
    assert (entry.target, entry.reason) == (f"outbox:{message.pk}", WHY["reason"])
    assert OutboxMessage.objects.filter(pk=message.pk, state="failed").exists()


@pytest.mark.parametrize("body", [{}, {"reason": ""}, {"reason": "  "}, {"reason": "x" * 501}])
def test_without_a_reason_nothing_is_discarded(body):
    message = create_message("failed")

    assert as_role("operator").post(f"/deliveries/{message.pk}/discard", body).status_code == 400
    assert OutboxMessage.objects.get().discarded_at is None


@pytest.mark.parametrize("state", ["pending", "sent"])
def test_only_what_failed_can_be_discarded_and_only_once(state):
    api, failed = as_role("operator"), create_message("failed")

    assert api.post(f"/deliveries/{create_message(state).pk}/discard", WHY).status_code == 409
    assert api.post(f"/deliveries/{failed.pk}/discard", WHY).status_code == 200
    assert api.post(f"/deliveries/{failed.pk}/discard", WHY).status_code == 409
    assert api.post("/deliveries/999999/discard", WHY).status_code == 404


def test_discarding_takes_the_right_to_change_switches():
    path = f"/deliveries/{create_message('failed').pk}/discard"

    assert as_role("viewer").post(path, WHY).status_code == 403
    assert with_token("reports:read").post(path, WHY).status_code == 403
    assert OutboxMessage.objects.get().discarded_at is None


def test_a_rehearsal_discards_nothing():
    message = create_message("failed")

    response = as_role("operator").post(
        f"/deliveries/{message.pk}/discard", {**WHY, "dry_run": True}
    )

    assert response.json()["discarded_at"]
    assert OutboxMessage.objects.get().discarded_at is None


def test_what_a_digest_tells_is_discarded_with_it():
    members = [create_message("failed", event="escalation.step").pk for _ in range(3)]
    sent = create_message("sent", event="escalation.step").pk
    digest = create_message("failed", event="outbox.digest", facts={"messages": [*members, sent]})

    as_role("operator").post(f"/deliveries/{digest.pk}/discard", WHY)

    gone = OutboxMessage.objects.exclude(discarded_at=None).values_list("pk", flat=True)
    assert set(gone) == {*members, digest.pk}
    recorded = json.loads(AuditEntry.objects.get(action="outbox.discarded").after)
    assert recorded["with"] == members


def test_a_discarded_message_is_retried_by_hand_only():
    message = create_message("failed")
    api = as_role("operator")
    api.post(f"/deliveries/{message.pk}/discard", WHY)

    assert api.post("/deliveries/retry", {"destination": "slack"}).status_code == 409
    response = api.post(f"/deliveries/{message.pk}/retry")

    assert (response.json()["state"], response.json()["discarded_at"]) == ("pending", None)
    assert response.json()["discarded_by"] == ""


def test_an_answer_to_a_click_that_comes_too_late_ends_by_itself():
    late = create_message("pending", "slack_reply:U1", event="interaction.answered", outcomes=[])
    other = create_message("pending", "slack", outcomes=[])

    for message in (late, other):
        claimed = claims.ClaimedMessage(message, 1)
        assert claims.record_outcome(claimed, claims.AttemptOutcome("too late"))

    late.refresh_from_db()
    other.refresh_from_db()
    assert (late.state, late.discarded_by) == ("failed", "")
    assert late.discarded_at is not None
    assert (other.state, other.discarded_at) == ("failed", None)
    assert selection.count_messages()["failed"] == 1


def test_a_discarded_message_is_deleted_as_late_as_a_sent_one():
    old, now = db_now() - timedelta(days=31), db_now()
    kept = create_message("failed", at=old)
    create_message("failed", at=old, discarded_at=now)
    recent = create_message("failed", discarded_at=now)

    ticks.run("outbox.purge", "test")

    assert set(OutboxMessage.objects.values_list("pk", flat=True)) == {kept.pk, recent.pk}


def test_the_page_discards_with_a_reason_and_says_so():
    message, operator = create_message("failed"), signed_in(person("operator", "kim")).client
    page = f"/deliveries/{message.pk}/"
    assert f'action="{page}discard/"' in operator.get(page).content.decode()

    assert operator.post(f"{page}discard/", {"reason": " "}).status_code == 400
    assert operator.get(f"{page}discard/").status_code == 405
    response = operator.post(f"{page}discard/", WHY)

    assert response.headers["Location"] == page
    shown = operator.get(page).content.decode()
    assert "Discarded" in shown
    assert "user:kim" in shown
    assert f'action="{page}discard/"' not in shown
    assert f'action="{page}retry/"' in shown


def test_a_viewer_can_not_discard():
    message, viewer = create_message("failed"), as_role("viewer").client

    assert "/discard/" not in viewer.get("/deliveries/").content.decode()
    assert viewer.post(f"/deliveries/{message.pk}/discard/", WHY).status_code == 403
    assert OutboxMessage.objects.get().discarded_at is None
