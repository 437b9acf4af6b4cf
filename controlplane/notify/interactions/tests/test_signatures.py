"""Signatures are verified first, over the raw body, with a time window; failures are rejected."""

import time
from dataclasses import replace
from urllib.parse import urlencode

import pytest

from controlplane.notify.interactions.signatures import WINDOW_SECONDS, is_genuine, sign
from controlplane.notify.models.interactions import AnsweredRequest

from .slack_requests import PATH, SECRET, payload, send, signed

BODY = payload("approve", {"approval": 1}, "U1", "https://hooks.slack.com/actions/T/1/x")


def test_the_signature_is_the_one_of_slacks_documentation():
    body = (
        b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow"
        b"&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner"
        b"&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands"
        b"%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
        b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
    )
    signature = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"

    assert sign(SECRET, "1531420618", body) == signature
    assert is_genuine(SECRET, "1531420618", signature, body, now=1531420618 + 299)


@pytest.mark.parametrize(
    ("seconds", "believed"),
    [(0, True), (299, True), (-299, True), (301, False), (-301, False), (86400, False)],
)
def test_five_minutes_both_ways(seconds, believed):
    signature = sign(SECRET, "1000000", BODY)

    assert is_genuine(SECRET, "1000000", signature, BODY, now=1000000 + seconds) is believed


@pytest.mark.parametrize(
    "timestamp",
    ["", "-1", "+1000000", "1e6", " 1000000", "1000000.0", "１００００００", "9" * 5000],
)
def test_only_a_plain_number_is_a_time(timestamp):
    assert not is_genuine(SECRET, timestamp, sign(SECRET, timestamp, BODY), BODY, now=1000000)


def test_without_a_secret_nothing_is_genuine():
    assert not is_genuine("", "1000000", sign("", "1000000", BODY), BODY, now=1000000)


def wrong_headers():
    good = signed(BODY)
    other = signed(BODY, secret="another")
    return {
        "no headers": {},
        "no signature": {k: v for k, v in good.items() if "Timestamp" in k},
        "no time": {k: v for k, v in good.items() if "Signature" in k},
        "wrong secret": other,
        "old": signed(BODY, at=time.time() - WINDOW_SECONDS - 5),
        "from the future": signed(BODY, at=time.time() + WINDOW_SECONDS + 5),
        "of another body": signed(BODY + b"&x=1"),
        "upper case": {**good, "X-Slack-Signature": good["X-Slack-Signature"].upper()},
        "without version": {**good, "X-Slack-Signature": good["X-Slack-Signature"][3:]},
        "other version": {**good, "X-Slack-Signature": "v1" + good["X-Slack-Signature"][2:]},
        "another time": {**good, "X-Slack-Request-Timestamp": str(int(time.time()) - 1)},
        "not ascii": {**good, "X-Slack-Signature": "v0=é"},
        "empty": {"X-Slack-Signature": "", "X-Slack-Request-Timestamp": ""},
    }


@pytest.mark.django_db
@pytest.mark.parametrize("case", wrong_headers())
def test_every_wrong_signature_is_answered_alike(case):
    response = send(BODY, wrong_headers()[case])

    assert (response.status_code, response.content) == (401, b"")
    assert not AnsweredRequest.objects.exists()


@pytest.mark.django_db
def test_installation_without_a_secret_has_nothing_there(settings):
    settings.SLACK = replace(settings.SLACK, signing_secret="")

    assert send(BODY, signed(BODY, secret="")).status_code == 404


@pytest.mark.django_db
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"payload",
        b"payload=",
        b"payload=[]",
        b"payload=%7B",
        b"payload=%FF",
        b"\xff\xfe",
        b"payload=1&payload=2",
        b"other=1",
        b"payload=" + b"%5B" * 20000,
    ],
)
def test_signed_nonsense_is_a_bad_request(body):
    assert send(body, signed(body)).status_code == 400


@pytest.mark.django_db
@pytest.mark.parametrize(
    "text",
    [
        '{"type":"view_submission"}',
        '{"type":"block_actions"}',
        '{"type":"block_actions","actions":[]}',
        '{"type":"block_actions","actions":{"0":1}}',
        '{"type":"block_actions","actions":[5],"user":7,"response_url":[]}',
        '{"type":"block_actions","actions":[{"action_id":["approve"]}]}',
        '{"type":"block_actions","actions":[{"action_id":"open","url":"https://x"}]}',
    ],
)
def test_other_interactions_are_taken_and_mean_nothing(text):
    body = urlencode({"payload": text}).encode()

    assert send(body, signed(body)).status_code == 200
    assert not AnsweredRequest.objects.exists()


@pytest.mark.django_db
def test_body_over_the_limit_is_refused():
    body = b"payload=" + b"a" * (64 * 1024)

    assert send(body, signed(body)).status_code == 413


@pytest.mark.django_db
def test_it_is_posted_to(client):
    assert client.get(PATH).status_code == 405
