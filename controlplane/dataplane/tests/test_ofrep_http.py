"""The paths of OFREP: authorization, methods, and errors."""

import json

import httpx
import pytest

from controlplane.dataplane.plane import Plane
from controlplane.dataplane.tests.served import BEARER, READER, REPORTER, ask, plane

FLAGS = "/ofrep/v1/evaluate/flags"
ONE = f"{FLAGS}/segment:finance"
EVENTS = "/ofrep/v1/events"


def flags_of(response: httpx.Response) -> dict[str, bool]:
    assert response.status_code == 200
    return {flag["key"]: flag["value"] for flag in response.json()["flags"]}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": f"Bearer {READER}x"}, 401),
        ({"X-API-Key": REPORTER}, 403),
    ],
)
@pytest.mark.parametrize(("method", "path"), [("POST", FLAGS), ("POST", ONE), ("GET", EVENTS)])
def test_whoever_may_not_read_is_told_in_the_protocols_shape(
    headers: dict[str, str], status: int, method: str, path: str
) -> None:
    response = ask(plane("segment:finance"), method, path, headers)

    assert response.status_code == status
    assert response.headers["Content-Type"] == "application/json"
    assert response.json().keys() == {"errorCode", "errorDetails", "metadata"}
    assert response.json()["errorCode"] == "GENERAL"
    assert ("WWW-Authenticate" in response.headers) is (status == 401)


@pytest.mark.parametrize("header", [BEARER, {"X-API-Key": READER}])
def test_token_is_taken_in_either_header(header: dict[str, str]) -> None:
    response = ask(plane("segment:finance"), "POST", ONE, header)

    assert response.json()["value"] is False
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["X-Request-ID"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("GET", FLAGS, "POST"), ("GET", ONE, "POST"), ("PUT", FLAGS, "POST"), ("POST", EVENTS, "GET")],
)
def test_other_method_is_refused_and_told_which_one_works(
    method: str, path: str, allowed: str
) -> None:
    response = ask(plane(), method, path, BEARER)

    assert response.status_code == 405
    assert response.headers["Allow"] == allowed
    assert response.json()["errorCode"] == "GENERAL"


@pytest.mark.parametrize("path", [FLAGS, ONE])
def test_body_that_is_too_large_is_refused(path: str) -> None:
    content = json.dumps({"context": {"targetingKey": "u" * 70_000}}).encode()

    response = ask(plane("segment:finance"), "POST", path, BEARER, content=content)

    assert response.status_code == 413
    assert response.json()["errorCode"] == "GENERAL"


@pytest.mark.parametrize("path", [FLAGS, ONE, EVENTS])
def test_start_without_a_database_says_when_to_come_back(path: str) -> None:
    response = ask(Plane(), "GET" if path == EVENTS else "POST", path, BEARER)

    assert response.status_code == 503
    assert int(response.headers["Retry-After"]) >= 1
    assert response.json()["errorCode"] == "GENERAL"


@pytest.mark.parametrize("written", ["segment:finance", "segment%3Afinance", "segment%3afinance"])
@pytest.mark.parametrize("end", ["", "/"])
def test_key_may_be_escaped_in_the_path(written: str, end: str) -> None:
    response = ask(plane("segment:finance"), "POST", f"{FLAGS}/{written}{end}", BEARER)

    assert response.json()["key"] == "segment:finance"
    assert response.json()["value"] is False


def test_both_forms_of_the_path_of_all_flags_work() -> None:
    served = plane("segment:finance")
    for path in (FLAGS, FLAGS + "/"):
        assert flags_of(ask(served, "POST", path, BEARER)) == {"segment:finance": False}


def test_bulk_is_conditional() -> None:
    served = plane("segment:finance")
    first = ask(served, "POST", FLAGS, BEARER, content=b'{"context":{}}')
    conditional = {**BEARER, "If-None-Match": first.headers["ETag"]}

    again = ask(served, "POST", FLAGS, conditional, content=b"{}")
    for_an_event = ask(served, "POST", f"{FLAGS}?flagConfigEtag=other", conditional)

    assert first.headers["Cache-Control"] == "no-cache"
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["ETag"] == first.headers["ETag"]
    assert flags_of(for_an_event) == {"segment:finance": False}
