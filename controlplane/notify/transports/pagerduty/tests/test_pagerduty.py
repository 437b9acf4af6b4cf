"""Requests to PagerDuty."""

from functools import partial

import pytest

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import as_role
from controlplane.core.outbox import services
from controlplane.core.outbox.models import Attempt, OutboxMessage
from controlplane.notify.delivery import sender
from controlplane.notify.delivery.tests.messages import message
from controlplane.notify.models.targets import Target
from controlplane.notify.transports import destinations
from controlplane.notify.transports.failures import PermanentFailure
from controlplane.notify.transports.pagerduty import transport as pagerduty
from controlplane.notify.transports.tests.fake_on_call_service import ROUTING_KEY, create_channel

pytestmark = pytest.mark.django_db
INCIDENT = "switchgear:staging:episode:12"
channel = partial(create_channel, pagerduty)


def test_critical_message_triggers_an_incident_with_its_facts(on_call_service):
    pagerduty.send(message(channel()))

    (request,) = on_call_service.requests
    body = request["body"]
    assert request["path"] == "/v2/enqueue"
    assert (body["routing_key"], body["event_action"]) == (ROUTING_KEY, "trigger")
    assert body["dedup_key"] == INCIDENT
    assert body["client_url"] == "https://switchgear.example.org/switches/segment/finance/"
    payload = body["payload"]
    assert payload["summary"].startswith("segment:finance ENGAGED")
    assert (payload["severity"], payload["class"]) == ("critical", "switch.engaged")
    assert payload["source"] == "https://switchgear.example.org"
    assert payload["timestamp"] == "2026-11-21T02:11:00.000000Z"
    assert payload["custom_details"]["Reason"] == "결제 이중 청구"


@pytest.mark.parametrize(
    ("severity", "shown"),
    [("critical", "critical"), ("warning", "warning"), ("info", "info"), ("odd", "error")],
)
def test_severity_is_mapped(severity, shown):
    event = pagerduty.event_of(message("pagerduty:1", severity=severity))

    assert event["payload"]["severity"] == shown


def test_summary_longer_than_pagerduty_takes_is_cut():
    facts = {"title": "x" * 3000}

    event = pagerduty.event_of(message("pagerduty:1", "escalation.step", facts=facts))

    assert len(event["payload"]["summary"]) <= 1024


def test_acknowledgement_and_end_of_a_subject_follow_its_incident(on_call_service):
    to = channel()

    pagerduty.send(message(to))
    pagerduty.send(message(to, "episode.acknowledged"))
    acknowledged = on_call_service.incidents[INCIDENT]
    pagerduty.send(message(to, "switch.released"))

    assert acknowledged == "acknowledged"
    assert on_call_service.incidents == {INCIDENT: "closed"}
    assert "payload" not in on_call_service.requests[-1]["body"]


def test_message_without_a_subject_is_an_incident_of_its_own(on_call_service):
    to = channel()

    for pk in (7, 7, 8):
        pagerduty.send(message(to, subject="", pk=pk))

    assert len(on_call_service.incidents) == 2


def test_wrong_routing_key_is_refused_without_naming_it(on_call_service):
    with pytest.raises(PermanentFailure, match="key") as caught:
        pagerduty.send(message(channel("W" * 32)))

    assert "W" * 32 not in caught.value.reason


def test_address_of_the_house_is_not_called_unless_it_is_allowed(on_call_service, settings):
    settings.WEBHOOK_ALLOW = ()

    with pytest.raises(PermanentFailure):
        pagerduty.send(message(channel()))

    assert on_call_service.requests == []


def test_routing_key_never_comes_out(on_call_service):
    pagerduty.send(message(channel()))

    assert destinations.redact_secrets(f"key {ROUTING_KEY}") == "key [redacted]"


def test_target_with_another_address_is_not_reached(on_call_service):
    to = channel()
    assert destinations.transport_for(to).reaches(to)

    Target.objects.update(address="slack")

    assert not destinations.transport_for(to).reaches(to)
    with pytest.raises(PermanentFailure):
        pagerduty.send(message(to))


def test_api_takes_a_routing_key_and_shows_its_end():
    body = {"name": "pager", "kind": "channel", "address": "pagerduty"}
    admin = as_role("admin")

    wrong = admin.post("/targets/", {**body, "pagerduty_routing_key": "short"})
    missing = admin.post("/targets/", body)
    made = admin.post("/targets/", {**body, "pagerduty_routing_key": ROUTING_KEY})

    assert (wrong.status_code, set(wrong.json()["errors"])) == (400, {"pagerduty_routing_key"})
    assert set(missing.json()["errors"]) == {"pagerduty_routing_key"}
    assert made.json()["pagerduty_routing_key"] == "…ey42"
    assert made.json()["pagerduty_region"] == "us"
    assert made.json()["reaches"]["to"] == ["PagerDuty"]


@pytest.mark.django_db(transaction=True)
def test_refused_message_waits_and_leaks_nothing(on_call_service):
    to = channel("W" * 32)
    services.announce(event="switch.engaged", event_key="a:1", facts={}, now=db_now(), to=[to])

    sender.send_one(to)

    failed = OutboxMessage.objects.get()
    assert failed.state == "failed"
    assert "W" * 32 not in failed.last_error + Attempt.objects.get().error
