"""Requests to Opsgenie."""

from functools import partial

import pytest

from controlplane.core.http.tests.callers import as_role
from controlplane.notify.delivery.tests.messages import message
from controlplane.notify.transports import destinations
from controlplane.notify.transports.failures import PermanentFailure
from controlplane.notify.transports.opsgenie import transport as opsgenie
from controlplane.notify.transports.tests.fake_on_call_service import API_KEY, create_channel

pytestmark = pytest.mark.django_db
INCIDENT = "switchgear:staging:episode:12"
channel = partial(create_channel, opsgenie)


def test_critical_message_creates_an_alert_with_its_facts(on_call_service):
    opsgenie.send(message(channel()))

    (request,) = on_call_service.requests
    body = request["body"]
    assert request["path"] == "/v2/alerts"
    assert request["headers"]["Authorization"] == f"GenieKey {API_KEY}"
    assert (body["alias"], body["priority"]) == (INCIDENT, "P1")
    assert body["message"].startswith("segment:finance ENGAGED")
    assert "Reason: 결제 이중 청구" in body["description"]
    assert body["details"]["Event"] == "switch.engaged"
    assert API_KEY not in str(body)


@pytest.mark.parametrize(
    ("severity", "priority"), [("critical", "P1"), ("warning", "P3"), ("info", "P5")]
)
def test_severity_is_mapped_to_a_priority(severity, priority):
    _, body = opsgenie.request_of(message("opsgenie:1", severity=severity))

    assert body["priority"] == priority


def test_title_longer_than_opsgenie_takes_is_cut(on_call_service):
    facts = {"title": "x" * 400}

    opsgenie.send(message(channel(), "escalation.step", facts=facts))

    assert len(on_call_service.requests[0]["body"]["message"]) == 130


def test_acknowledgement_and_end_of_a_subject_follow_its_alert(on_call_service):
    to = channel()

    opsgenie.send(message(to))
    opsgenie.send(message(to, "episode.acknowledged"))
    acknowledged = on_call_service.incidents[INCIDENT]
    opsgenie.send(message(to, "slo.alert_over"))

    assert acknowledged == "acknowledged"
    assert on_call_service.incidents == {INCIDENT: "closed"}
    assert on_call_service.requests[-1]["path"] == (
        "/v2/alerts/switchgear%3Astaging%3Aepisode%3A12/close?identifierType=alias"
    )


def test_wrong_api_key_is_refused_and_no_key_comes_out(on_call_service):
    wrong = "0" * 36

    with pytest.raises(PermanentFailure, match="valid key"):
        opsgenie.send(message(channel(wrong)))

    assert destinations.redact_secrets(f"key {wrong}") == "key [redacted]"


def test_api_takes_an_api_key_and_a_region():
    body = {"name": "pager", "kind": "channel", "address": "opsgenie", "opsgenie_api_key": API_KEY}
    admin = as_role("admin")

    made = admin.post("/targets/", {**body, "opsgenie_region": "eu"})
    wrong = admin.post("/targets/", {**body, "name": "other", "opsgenie_region": "mars"})

    assert made.json()["opsgenie_api_key"] == "…c889"
    assert made.json()["opsgenie_region"] == "eu"
    assert set(wrong.json()["errors"]) == {"opsgenie_region"}
