"""OFREP errors: always a code and details, as OpenFeature defines them."""

from typing import Any

import pytest

from controlplane.core.errors import Forbidden, TooLarge, Unauthenticated, Unavailable
from controlplane.dataplane.serving import ofrep
from controlplane.dataplane.serving.ofrep import BadRequest
from controlplane.dataplane.state import State
from controlplane.dataplane.tests.test_ofrep import content, entry, get_headers, state_of


@pytest.mark.parametrize(
    "flag", ["segment:nobody", "finance", "", "segment:", "사용자", "a" * 5000]
)
def test_key_that_was_never_registered_is_not_found(flag: str) -> None:
    response = ofrep.answer_flag(state_of(), b"", flag)

    assert response[0] == 404
    assert content(response).keys() == {"key", "errorCode", "errorDetails", "metadata"}
    assert content(response)["key"] == flag
    assert content(response)["errorCode"] == "FLAG_NOT_FOUND"


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b'{"context":{}}', b'{"context":null}', b'{"context":{"targetingKey":null}}'],
)
def test_missing_context_is_an_empty_one(body: bytes) -> None:
    state = state_of(entry("feature:search", "50"))

    assert content(ofrep.answer_flag(state, body, "feature:search"))["value"] is False
    assert content(ofrep.answer_flag(state, body, "feature:export"))["value"] is True
    assert ofrep.answer_flags(state, {}, body) == ofrep.answer_flags(state, {}, b"{}")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "PARSE_ERROR"),
        (b"[]", "PARSE_ERROR"),
        (b"null", "PARSE_ERROR"),
        (b"\xff\xfe", "PARSE_ERROR"),
        (b'{"context":{"targetingKey":"\\ud800"}}', "PARSE_ERROR"),
        (b"[" * 60_000, "PARSE_ERROR"),
        (b'{"context":[]}', "INVALID_CONTEXT"),
        (b'{"context":"u1"}', "INVALID_CONTEXT"),
        (b'{"context":{"targetingKey":7}}', "INVALID_CONTEXT"),
        (b'{"context":{"targetingKey":{"id":"u1"}}}', "INVALID_CONTEXT"),
        (b'{"context":{"targetingKey":true}}', "INVALID_CONTEXT"),
    ],
)
def test_body_that_is_not_a_request_is_named_as_what_it_is(body: bytes, code: str) -> None:
    state = state_of(entry("feature:export"))

    response = ofrep.answer_flag(state, body, "feature:export")
    with pytest.raises(BadRequest) as refused:
        ofrep.answer_flags(state, {}, body)

    assert response[0] == 400
    assert content(response)["key"] == "feature:export"
    assert content(response)["errorCode"] == code
    whole = ofrep.answer_error(refused.value)
    assert whole[0] == 400
    assert {"key": "feature:export", **content(whole)} == content(response)
    assert ofrep.answer_flag(state, body, "feature:nobody")[0] == 400


@pytest.mark.parametrize(
    ("error", "status", "header"),
    [
        (Unauthenticated("Send a token."), 401, b"www-authenticate"),
        (Forbidden("This needs a scope.", scope="switches:read"), 403, b"cache-control"),
        (TooLarge("Too much."), 413, b"cache-control"),
        (Unavailable("Later.", retry_after=1), 503, b"retry-after"),
    ],
)
def test_every_refusal_has_a_code_and_details(error: Any, status: int, header: bytes) -> None:
    response = ofrep.answer_error(error)

    assert response[0] == status
    assert content(response) == {
        "errorCode": "GENERAL",
        "errorDetails": error.detail,
        "metadata": {},
    }
    assert header in get_headers(response)


def test_nothing_published_yet_is_unavailable() -> None:
    for call in (
        lambda: ofrep.answer_flag(State(), b"", "feature:export"),
        lambda: ofrep.answer_flags(State(), {}, b""),
        lambda: ofrep.refetch_event(State()),
    ):
        with pytest.raises(Unavailable):
            call()
