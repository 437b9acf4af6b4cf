"""Webhook requests, and the classification of responses."""

import json
import logging
import time
from datetime import timedelta

import orjson
import pytest

from controlplane.core.clock import db_now
from controlplane.core.outbox import services
from controlplane.core.outbox.models import Attempt, OutboxMessage
from controlplane.notify.delivery import sender
from controlplane.notify.models.targets import Target
from controlplane.notify.transports import destinations, outbound
from controlplane.notify.transports.failures import PermanentFailure, TransientFailure
from controlplane.notify.transports.webhook import transport as webhook

from .fake_receiver import fake_receiver, verified
from .messages import message

pytestmark = pytest.mark.django_db
FIELDS = sorted(
    ["id", "event", "severity", "subject", "at", "environment", "title", "lines", "facts", "url"]
)
ANOTHER_SECRET = "whsec_" + "QUJD" * 8
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
def receiver(settings):
    settings.WEBHOOK_ALLOW = ("127.0.0.0/8",)
    settings.PUBLIC_URL = "https://switchgear.example.org"
    with fake_receiver() as fake:
        yield fake


def target(receiver, **more):
    fields = {
        "name": "pager",
        "kind": "channel",
        "address": "webhook",
        "webhook_url": f"http://127.0.0.1:{receiver.port}/hooks/T0P-S3CRET-PATH",
        "webhook_secret": SECRET,
        "created_at": db_now(),
    }
    return Target.objects.create(**{**fields, **more})


def to(receiver, **more):
    return f"webhook:{target(receiver, **more).pk}"


def test_the_body_says_what_happened_in_words_and_facts(receiver, settings):
    settings.ENVIRONMENT_NAME = "staging"

    webhook.send(message(to(receiver)))

    (request,) = receiver.requests
    body = request["json"]
    assert sorted(body) == FIELDS
    assert body["id"] == request["headers"]["webhook-id"]
    assert (body["event"], body["severity"]) == ("switch.engaged", "critical")
    assert (body["subject"], body["environment"]) == ("episode:12", "staging")
    assert body["at"] == "2026-11-21T02:11:00.000000Z"
    assert body["title"].startswith("segment:finance ENGAGED")
    assert {"label": "Reason", "text": "결제 이중 청구"} in body["lines"]
    assert body["facts"]["switch"] == "segment:finance"
    assert body["url"] == "https://switchgear.example.org/switches/segment/finance/"


def test_the_signature_is_that_of_standard_webhooks():
    """The example of the Standard Webhooks libraries."""
    headers = webhook.sign_request(
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    )

    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_receiver_can_verify_what_it_got_and_notices_a_change(receiver):
    webhook.send(message(to(receiver)))

    (request,) = receiver.requests
    assert verified(request, SECRET)
    assert abs(int(request["headers"]["webhook-timestamp"]) - time.time()) < 5
    assert not verified({**request, "body": request["body"] + b" "}, SECRET)
    assert not verified(request, ANOTHER_SECRET)


def test_a_repeat_has_the_same_id_and_is_dropped(receiver):
    destination = to(receiver)

    webhook.send(message(destination))
    webhook.send(message(destination, attempts=3))
    webhook.send(message(destination, pk=8, event_key="audit:8"))

    assert len(receiver.requests) == 3
    assert len(receiver.seen) == 2


@pytest.mark.parametrize("status", ["200", "201", "202", "204"])
def test_a_2xx_is_taken(receiver, status):
    receiver.script = [status]

    webhook.send(message(to(receiver)))

    assert len(receiver.requests) == 1


@pytest.mark.parametrize(
    "status", ["301", "302", "307", "308", "400", "401", "403", "404", "405", "410", "413", "422"]
)
def test_a_refusal_is_final(receiver, status):
    receiver.script = [status]

    with pytest.raises(PermanentFailure, match=status):
        webhook.send(message(to(receiver)))


@pytest.mark.parametrize("status", ["408", "425", "429", "500", "502", "503", "504"])
def test_a_passing_trouble_is_tried_again_when_the_receiver_says(receiver, status):
    receiver.script = [f"{status} Retry-After 90"]

    with pytest.raises(TransientFailure, match=status) as caught:
        webhook.send(message(to(receiver)))

    assert caught.value.retry_after_seconds == 90
    assert caught.value.in_doubt == status.startswith("5")


def test_no_answer_is_a_doubt_and_ends_in_time(receiver, monkeypatch):
    monkeypatch.setattr(outbound, "WHOLE_SECONDS", 0.3)
    receiver.script = ["hang"]

    with pytest.raises(TransientFailure) as caught:
        webhook.send(message(to(receiver)))

    assert caught.value.in_doubt


def test_an_answer_without_end_is_read_no_further(receiver):
    receiver.script = ["flood"]
    before = time.monotonic()

    webhook.send(message(to(receiver)))

    assert time.monotonic() - before < 5


def test_a_packed_answer_is_never_unpacked(receiver):
    receiver.script = ["200 Content-Encoding gzip"]  # "ok" is no gzip: unpacking it would raise.

    webhook.send(message(to(receiver)))

    assert len(receiver.requests) == 1


def test_a_redirect_is_not_followed(receiver, settings):
    with fake_receiver() as inside:
        receiver.script = [f"307 Location http://127.0.0.1:{inside.port}/admin"]

        with pytest.raises(PermanentFailure, match="redirects"):
            webhook.send(message(to(receiver)))

        assert inside.requests == []


def test_a_secret_of_before_they_were_sealed_signs_as_well(receiver):
    sealed = target(receiver, name="sealed")
    sealed.sign_with(SECRET)
    sealed.save()

    for destination in (to(receiver), f"webhook:{sealed.pk}"):
        webhook.send(message(destination))

    assert SECRET not in sealed.webhook_secret
    assert len(receiver.requests) == 2
    for request in receiver.requests:
        headers, body = request["headers"], orjson.dumps(request["json"])
        right = webhook.sign_request(
            headers["webhook-id"], int(headers["webhook-timestamp"]), body, SECRET
        )
        assert headers["webhook-signature"] == right["webhook-signature"]


@pytest.mark.parametrize("secret", ["", "hush", "whsec_", "whsec_!!!!", "whsec_c2hvcnQ="])
def test_nothing_is_sent_without_a_secret_to_sign_with(receiver, secret):
    with pytest.raises(PermanentFailure, match="secret"):
        webhook.send(message(to(receiver, webhook_secret=secret)))

    assert receiver.requests == []


@pytest.mark.parametrize("name", ["", ":", ":x", ":-1", ":٣", ":99999999999999999999"])
def test_what_names_no_target_is_not_reached(name):
    assert not destinations.transport_for(f"webhook{name}").reaches(f"webhook{name}")


def test_a_target_that_is_gone_or_no_webhook_is_not_reached(receiver):
    gone = target(receiver)
    destination = f"webhook:{gone.pk}"
    assert destinations.transport_for(destination).reaches(destination)

    gone.address = "slack"
    gone.save()

    assert not destinations.transport_for(destination).reaches(destination)
    assert not destinations.transport_for("webhook:999999").reaches("webhook:999999")
    with pytest.raises(PermanentFailure):
        destinations.send_message(message(destination))


def test_url_and_secret_never_come_out(receiver):
    destination = to(receiver)
    destinations.transport_for(destination).reaches(destination)
    url = Target.objects.get(name="pager").webhook_url
    path = url.partition("127.0.0.1")[2].partition("/")[2]

    redacted = destinations.redact_secrets(
        f"{url} | /{path} | {SECRET} | {SECRET.removeprefix('whsec_')}"
    )

    assert "S3CRET" not in redacted
    assert "MfKQ9r8" not in redacted


@pytest.mark.django_db(transaction=True)
def test_a_message_goes_through_the_outbox_and_leaks_nothing(receiver, caplog):
    caplog.set_level(logging.DEBUG)
    destination = to(receiver)
    receiver.script = ["404"]
    services.announce(
        event="switch.engaged", event_key="audit:1", facts={}, now=db_now(), to=[destination]
    )

    sender.start_sending(db_now())

    ends = time.monotonic() + 5
    while OutboxMessage.objects.get().state == "pending":
        assert time.monotonic() < ends
        time.sleep(0.02)
    failed = OutboxMessage.objects.get()
    assert (failed.state, failed.attempts) == ("failed", 1)
    (attempt,) = Attempt.objects.all()
    stored = json.dumps([failed.last_error, attempt.error, failed.payload]) + caplog.text
    assert "404" in stored
    assert "S3CRET" not in stored
    assert SECRET not in stored


def test_the_clock_of_the_attempt_is_signed_and_not_that_of_the_message(receiver):
    old = message(to(receiver))
    old.created_at -= timedelta(days=3)

    webhook.send(old)

    assert abs(int(receiver.requests[0]["headers"]["webhook-timestamp"]) - time.time()) < 5
