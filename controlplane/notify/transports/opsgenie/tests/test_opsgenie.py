"""Requests to Opsgenie, and the classification of responses."""

import httpx
import pytest

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import as_role
from controlplane.notify.delivery.tests.messages import message
from controlplane.notify.models.targets import Target
from controlplane.notify.transports import destinations
from controlplane.notify.transports.failures import PermanentFailure, TransientFailure
from controlplane.notify.transports.opsgenie import transport as opsgenie
from controlplane.notify.transports.tests.fake_on_call_service import API_KEY

pytestmark = pytest.mark.django_db
INCIDENT = "switchgear:staging:episode:12"


def channel(key=API_KEY, region="us"):
    target = Target(name="pager", kind="channel", address="opsgenie", created_at=db_now())
    opsgenie.SETTINGS.write(target, {"opsgenie_api_key": key, "opsgenie_region": region})
    target.save()
    return f"opsgenie:{target.pk}"


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


@pytest.mark.parametrize("region", ["us", "eu"])
def test_region_chooses_the_address(settings, region):
    settings.OPSGENIE_API_URL = ""
    requests_made = []

    class Recording(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request):
            requests_made.append(request.url.host)
            return httpx.Response(202)

    opsgenie.send(message(channel(region=region)), transport=Recording())

    assert requests_made == [{"us": "api.opsgenie.com", "eu": "api.eu.opsgenie.com"}[region]]


@pytest.mark.parametrize("status", ["400", "401", "403", "404", "422"])
def test_refusal_is_final(on_call_service, status):
    on_call_service.script = [status]

    with pytest.raises(PermanentFailure, match=status):
        opsgenie.send(message(channel()))


@pytest.mark.parametrize("status", ["429", "500", "502", "503"])
def test_passing_trouble_is_tried_again_when_opsgenie_says(on_call_service, status):
    on_call_service.script = [f"{status} Retry-After 90"]

    with pytest.raises(TransientFailure, match=status) as caught:
        opsgenie.send(message(channel()))

    assert caught.value.retry_after_seconds == 90


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
