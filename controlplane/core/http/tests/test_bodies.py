"""Request bodies: one JSON object of at most 64 KiB that can be stored; anything else is a 4xx."""

import json

import pytest

from controlplane.core.http.json_format import MAX_DEPTH
from controlplane.core.http.tests.callers import as_role
from controlplane.core.protocol import MAX_BODY_BYTES

ENGAGE = "/switches/segment/finance/engage"
GOOD = {"reason": "card payments charged twice", "expires_in": "24h"}


@pytest.fixture
def operator(db):
    return as_role("operator")


def nothing_written(operator):
    found = operator.get("/switches/segment/finance/").json()
    return found["state"] == "released" and not operator.get("/audit/").json()["results"]


def nested(levels):
    return json.loads("[" * levels + "]" * levels)


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"{'reason': 1}",
        b'{"reason": NaN}',
        b'{"reason": Infinity}',
        b'{"evidence": 1e999}',
        b'{"reason": "\\ud800"}',
        b'{"reason": "\xff\xfe"}',
        b'\xef\xbb\xbf{"reason": "with a byte order mark"}',
        b"[]",
        b'"text"',
        b"5",
        b"null",
        b"true",
        b"{} {}",
        b"[" * 1100 + b"]" * 1100,
        b'{"a":' * 1100 + b"1" + b"}" * 1100,
    ],
)
def test_what_is_not_one_json_object_is_a_bad_request(operator, body):
    response = operator.send("post", ENGAGE, body)

    assert response.status_code == 400
    assert response["Content-Type"] == "application/problem+json"
    assert response.json()["type"] == "urn:switchgear:problem:bad-request"
    assert nothing_written(operator)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "reason"),
        ({**GOOD, "reason": None}, "reason"),
        ({**GOOD, "reason": 12345678901}, "reason"),
        ({**GOOD, "reason": ["card payments charged twice"]}, "reason"),
        ({**GOOD, "reason": {"text": "card payments charged twice"}}, "reason"),
        ({**GOOD, "reason": True}, "reason"),
        ({**GOOD, "reason": ""}, "reason"),
        ({**GOOD, "reason": " \t\n "}, "reason"),
        ({**GOOD, "reason": "short"}, "reason"),
        ({**GOOD, "reason": "we need to stop it"}, "reason"),
        ({**GOOD, "reason": "긴급 조치합니다"}, "reason"),
        ({**GOOD, "reason": "card payments charged twice" * 100}, "reason"),
        ({**GOOD, "reason": "card payments\x00charged twice"}, "reason"),
        ({**GOOD, "reason": "card payments \x1b[31m charged twice"}, "reason"),
        ({"reason": GOOD["reason"]}, "expires_in"),
        ({**GOOD, "expires_in": 24}, "expires_in"),
        ({**GOOD, "expires_in": "soon"}, "expires_in"),
        ({**GOOD, "expires_in": "0s"}, "expires_in"),
        ({**GOOD, "expires_in": "-1h"}, "expires_in"),
        ({**GOOD, "expires_in": "31d"}, "expires_in"),
        ({**GOOD, "expires_in": "99999999999999999999d"}, "expires_in"),
        ({**GOOD, "expires_in": "24h", "expires_at": "2099-01-01T00:00:00Z"}, "expires_at"),
        ({"reason": GOOD["reason"], "expires_at": "2001-01-01T00:00:00Z"}, "expires_at"),
        ({"reason": GOOD["reason"], "expires_at": "2099-01-01T00:00:00Z"}, "expires_at"),
        ({"reason": GOOD["reason"], "expires_at": "9999-12-31T23:59:59-14:00"}, "expires_at"),
        ({"reason": GOOD["reason"], "expires_at": "tomorrow"}, "expires_at"),
        ({"reason": GOOD["reason"], "expires_at": 1790000000}, "expires_at"),
        ({**GOOD, "on_expiry": "explode"}, "on_expiry"),
        ({**GOOD, "on_expiry": 1}, "on_expiry"),
        ({**GOOD, "evidence": "a text"}, "evidence"),
        ({**GOOD, "evidence": [1]}, "evidence"),
        ({**GOOD, "evidence": {"log": "x" * 40_000}}, "evidence"),
        ({**GOOD, "evidence": {"a": {"b": ["ok", "nul\x00"]}}}, "evidence.a.b.1"),
        ({**GOOD, "evidence": {"nul\x00key": 1}}, "evidence.nul\\u0000key"),
        ({**GOOD, "evidence": {"deep": nested(MAX_DEPTH)}}, "evidence"),
        ({**GOOD, "break_glass": "please"}, "break_glass"),
        ({**GOOD, "dry_run": "false"}, "dry_run"),
        ({**GOOD, "dry_run": 1}, "dry_run"),
        ({**GOOD, "dryrun": True}, "dryrun"),
        ({**GOOD, "dry-run": True}, "dry-run"),
        ({**GOOD, "expiresIn": "24h"}, "expiresIn"),
        ({**GOOD, "": 1, "reson": "x"}, "reson"),
    ],
)
def test_wrong_field_is_named(operator, body, field):
    response = operator.post(ENGAGE, body)

    assert response.status_code == 400
    problem = response.json()
    assert field in problem["errors"]
    assert all(isinstance(text, str) for text in problem["errors"][field])
    assert nothing_written(operator)


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/switches/galaxy/finance/engage", "scope"),
        ("/switches/Segment/finance/engage", "scope"),
        ("/switches/global/finance/engage", "key"),
        ("/switches/segment/fi%20nance/engage", "key"),
        ("/switches/segment/%EA%B2%B0%EC%A0%9C/engage", "key"),
        ("/switches/segment/a%00b/engage", "key"),
        ("/switches/segment/a%0A/engage", "key"),
        ("/switches/segment/%FF%FE/engage", "key"),
        ("/switches/segment/a:b/engage", "key"),
        (f"/switches/segment/{'k' * 121}/engage", "key"),
        (f"/switches/segment/{'k' * 5000}/engage", "key"),
    ],
)
@pytest.mark.parametrize("headers", [{}, {"idempotency_key": "k-1"}])
def test_odd_scope_or_key_is_named(operator, path, field, headers):
    response = operator.post(path, GOOD, **headers)

    assert response.status_code == 400
    assert field in response.json()["errors"]


def test_each_unknown_field_is_refused_by_name(operator):
    response = operator.post(ENGAGE, {**GOOD, "severity": "high", "labels": ["a"]})

    assert response.status_code == 400
    assert response.json()["errors"].keys() == {"severity", "labels"}


def test_null_stands_for_an_absent_optional_field(operator):
    absent = {"expires_at": None, "on_expiry": None, "evidence": None, "dry_run": None}

    response = operator.post(ENGAGE, {**GOOD, **absent})

    assert response.status_code == 200


def test_of_a_field_given_twice_the_last_counts(operator):
    body = b'{"reason": "first", "expires_in": "1h", "reason": "card payments charged twice"}'

    response = operator.send("post", ENGAGE, body)

    assert response.json()["reason"] == "card payments charged twice"


@pytest.mark.parametrize(
    "reason",
    [
        "결제 이중 청구 확인됨",
        "決済が二重に請求されています",
        "оплата списывается дважды",
        "💳💳 charged twice in checkout",
        "=SUM(A1) charged twice in checkout",
        "a'); DROP TABLE core_user; -- in checkout",
        '<b>checkout</b> & "quotes" \\ charged twice',
        "ﬁrst ligature, e\u0301 combining, checkout charges",
    ],
)
def test_unicode_reason_comes_back_as_it_was_sent(operator, reason):
    response = operator.post(ENGAGE, {**GOOD, "reason": reason})

    assert response.status_code == 200
    assert operator.get("/switches/segment/finance/").json()["reason"] == reason
    assert operator.get("/audit/").json()["results"][0]["reason"] == reason


def test_evidence_comes_back_as_it_was_sent(operator):
    evidence = {"alert": "결제", "n": [1, 2.5, None, True], "nested": {"a": {}}, "": "empty key"}

    operator.post(ENGAGE, {**GOOD, "evidence": evidence})

    history = operator.get("/switches/segment/finance/history").json()
    assert history["results"][0]["evidence"] == evidence


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/xml",
        "application/json-patch+json",
        "application/json; charset=latin-1",
        "application/json; charset=utf-16",
        "nonsense",
        "",
    ],
)
def test_other_content_type_is_refused_and_says_what_to_send(operator, content_type):
    response = operator.send("post", ENGAGE, json.dumps(GOOD), content_type)

    assert response.status_code == 415
    assert "application/json" in response.json()["detail"]
    assert nothing_written(operator)


@pytest.mark.parametrize(
    "content_type",
    ["application/json; charset=utf-8", 'application/json;charset="UTF-8"', "Application/JSON"],
)
def test_json_in_utf8_is_read_however_it_is_spelt(operator, content_type):
    response = operator.send("post", ENGAGE, json.dumps(GOOD), content_type)

    assert response.status_code == 200


def test_body_up_to_the_limit_is_read_and_beyond_it_refused(operator):
    head, tail = b'{"dry_run": true, "pad": "', b'"}'
    most = head + b"x" * (MAX_BODY_BYTES - len(head) - len(tail)) + tail

    assert operator.send("post", ENGAGE, most).status_code == 400  # Read: no reason in it.
    refused = operator.send("post", ENGAGE, most + b" ")

    assert refused.status_code == 413
    assert refused.json()["type"] == "urn:switchgear:problem:too-large"


def test_empty_body_is_an_empty_object(operator):
    undo = "/switches/segment/finance/undo"

    for content_type in ("application/json", "application/x-www-form-urlencoded", "text/plain"):
        operator.post(ENGAGE, GOOD)
        assert operator.send("post", undo, b"", content_type).status_code == 200


@pytest.mark.parametrize("field", ["owner", "description", "runbook_url"])
@pytest.mark.parametrize("value", [5, ["a"], "nul\x00", "x" * 5000])
def test_wrong_description_is_named(operator, field, value):
    response = operator.patch("/switches/segment/finance/", {field: value})

    assert response.status_code == 400
    assert field in response.json()["errors"]


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "ftp://x/y",
        "no url",
        "//host",
        "https://",
        "https:///x",
        "https://a b/c",
        "https://[::1",
    ],
)
def test_runbook_must_be_a_web_address(operator, url):
    response = operator.patch("/switches/segment/finance/", {"runbook_url": url})

    assert "runbook_url" in response.json()["errors"]


def test_description_of_nothing_is_refused(operator):
    response = operator.patch("/switches/segment/finance/", {})

    assert response.status_code == 400
    assert operator.get("/switches/").json()["results"] == []
