"""`POST /api/v1/check`: a decision per call, and clear errors for invalid questions."""

import json
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.errors import DomainError
from controlplane.dataplane.serving import responses
from controlplane.dataplane.tests.served import BEARER, REPORTER, ask, plane
from switches.evaluate import read_question

PATH = "/api/v1/check"


def check(question: Any, *switch_ids: str, path: str = PATH) -> httpx.Response:
    content = question if isinstance(question, bytes) else json.dumps(question).encode()
    return ask(plane(*switch_ids), "POST", path, BEARER, content=content)


def test_blocked_call_names_switch_reason_and_version() -> None:
    response = check({"segments": ["retail", "finance"]}, "feature:export", "segment:finance")

    assert response.status_code == 200
    assert response.json() == {
        "allowed": False,
        "switch": "segment:finance",
        "reason": "정산 오류, INC-7",
        "version": 17,
    }
    assert "X-Request-ID" in response.headers
    assert "Switchgear-Age" in response.headers


def test_allowed_call_names_nothing() -> None:
    response = check({"segments": ["retail"], "targeting_key": None}, "segment:finance")

    assert response.json() == {"allowed": True, "switch": None, "reason": None, "version": 17}


@pytest.mark.parametrize("path", [PATH, f"{PATH}/"])
def test_both_forms_of_the_path_work(path: str) -> None:
    assert check({}, "global:all", path=path).json()["switch"] == "global:all"


@pytest.mark.parametrize(
    ("question", "field"),
    [
        ({"segments": "finance"}, "segments"),
        ({"segments": None}, "segments"),
        ({"features": [1]}, "features"),
        ({"features": ["a b"]}, "features"),
        ({"features": [""]}, "features"),
        ({"experiments": ["x" * 121]}, "experiments"),
        ({"experiments": {"a": 1}}, "experiments"),
        ({"targeting_key": 7}, "targeting_key"),
        ({"segment": ["finance"]}, "segment"),
    ],
)
def test_wrong_field_is_named(question: dict[str, Any], field: str) -> None:
    response = check(question, "segment:finance")

    assert response.status_code == 400
    assert response.headers["Content-Type"] == "application/problem+json"
    assert list(response.json()["errors"]) == [field]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'"x"', b"\xff{}", b'{"targeting_key":"\\ud800"}']
)
def test_body_that_is_no_json_object_is_refused(body: bytes) -> None:
    response = check(body)

    assert response.status_code == 400
    assert set(response.json()) >= {"type", "title", "status", "detail"}


def test_body_of_64_kib_passes_and_one_byte_more_does_not() -> None:
    room = 64 * 1024 - len('{"targeting_key":""}')
    assert check({"targeting_key": "x" * (room - 1)}).status_code == 200

    response = check({"targeting_key": "x" * room})
    assert response.status_code == 413
    assert response.headers["Content-Type"] == "application/problem+json"


def test_token_of_another_scope_may_not_ask() -> None:
    headers = {"X-API-Key": REPORTER}
    response = ask(plane("global:all"), "POST", PATH, headers, content=b"{}")

    assert response.status_code == 403
    assert "switches:read" in response.json()["detail"]


def test_get_is_refused() -> None:
    response = ask(plane(), "GET", PATH, BEARER)

    assert response.status_code == 405
    assert response.headers["Allow"] == "POST"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
    | st.dictionaries(
        st.sampled_from(["segments", "features", "experiments", "targeting_key"]),
        st.none() | st.text() | st.lists(st.text() | st.integers(), max_size=3),
    )
)
def test_any_json_is_a_question_or_a_refusal(document: Any) -> None:
    state = plane("segment:finance").state
    try:
        question = read_question(responses.parse_object(json.dumps(document).encode()))
        _, (status, _, body) = responses.decide(state, {}, question)
    except DomainError as error:
        assert error.status == 400
    else:
        assert status == 200
        assert set(json.loads(body)) == {"allowed", "switch", "reason", "version"}
