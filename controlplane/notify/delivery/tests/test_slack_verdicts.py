"""Classification of Slack's answers: sent, retried, or failed."""

import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.transports import destinations, outbound
from controlplane.notify.transports.failures import (
    DeliveryFailure,
    PermanentFailure,
    TransientFailure,
)

from .conftest import TOKEN


def send():
    now = datetime(2026, 11, 21, tzinfo=UTC)
    facts = {"switch": "segment:finance", "reason": "provider outage"}
    destinations.send_message(
        OutboxMessage(
            event="switch.engaged",
            destination="slack",
            subject="",
            payload=facts,
            created_at=now,
        )
    )


def test_by_bot_token_the_message_goes_to_the_channel(by_bot):
    send()

    (request,) = by_bot.requests
    assert request["path"] == "/api/chat.postMessage"
    assert request["authorization"] == f"Bearer {TOKEN}"
    assert request["json"]["channel"] == "C0000OPS"
    assert "segment:finance" in request["json"]["text"]
    assert request["json"]["blocks"][0]["type"] == "header"


def test_by_webhook_the_message_goes_to_its_url(by_webhook):
    by_webhook.script = ["text 200 ok"]

    send()

    (request,) = by_webhook.requests
    assert request["path"] == "/services/T0/B0/secretpath"
    assert request["authorization"] is None


VERDICTS = {
    ("by_bot", PermanentFailure): (
        *("ok:false invalid_auth", "ok:false channel_not_found", "ok:false is_archived"),
        *("404", "302", "400"),
    ),
    ("by_bot", TransientFailure): (
        *("ok:false internal_error", "ok:false ratelimited", "ok:false a_code_of_tomorrow"),
        *("text 200 surprise", "text 200 {}", "500", "503", "429 7", "reset"),
    ),
    ("by_webhook", PermanentFailure): ("text 404 no_service", "text 403 action_prohibited", "404"),
    ("by_webhook", TransientFailure): ("500", "429 3", "ok:false internal_error", "reset"),
}


@pytest.mark.parametrize(
    ("way", "failure", "step"),
    [(*verdict, step) for verdict, steps in VERDICTS.items() for step in steps],
)
def test_answer_is_a_permanent_or_a_transient_failure(request, way, failure, step):
    request.getfixturevalue(way).always = step

    with pytest.raises(failure):
        send()


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7), ("0.5", 0.5), ("-3", None), ("soon", None), ("nan", None), ("1e9", 86400)],
)
def test_retry_after_is_read(by_bot, header, seconds):
    by_bot.always = f"429 {header}"

    with pytest.raises(TransientFailure) as caught:
        send()

    assert caught.value.retry_after_seconds == seconds


def test_retry_after_may_be_a_date(by_bot):
    by_bot.always = "429 Fri, 31 Dec 2100 23:59:59 GMT"

    with pytest.raises(TransientFailure) as caught:
        send()

    assert caught.value.retry_after_seconds == outbound.MAX_RETRY_AFTER_SECONDS


def test_nobody_listens(by_bot, settings):
    settings.SLACK = replace(settings.SLACK, api_url="http://127.0.0.1:9/api")

    with pytest.raises(TransientFailure, match="connection failed"):
        send()


@pytest.mark.parametrize("step", ["hang", "drip"])
def test_no_answer_ends_in_time_however_slack_hangs(by_bot, impatient, step):
    by_bot.always = step
    started = time.monotonic()

    with pytest.raises(TransientFailure, match="may have been delivered"):
        send()

    assert time.monotonic() - started < 1.5


def test_not_configured_any_more_is_hopeless():
    with pytest.raises(PermanentFailure, match="no longer configured"):
        send()


@pytest.mark.parametrize(
    "step", ["404", "500", "reset", f"ok:false {TOKEN}", f"text 400 {TOKEN}", f"text 500 {TOKEN}"]
)
def test_a_reason_never_repeats_a_secret(by_bot, step):
    by_bot.always = step

    with pytest.raises(DeliveryFailure) as caught:
        send()

    assert TOKEN not in caught.value.reason
    assert by_bot.url not in caught.value.reason
