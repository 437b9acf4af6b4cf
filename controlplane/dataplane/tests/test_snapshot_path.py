"""`GET /api/v1/snapshot`: the document, its validators, and conditional requests."""

import pytest

from controlplane.dataplane.plane import Plane
from controlplane.dataplane.tests.served import BEARER, EPOCH, ETAG, ask, copy, plane

PATH = "/api/v1/snapshot"


def test_snapshot_carries_document_and_headers() -> None:
    served = plane("segment:finance")

    response = ask(served, "GET", PATH, BEARER)

    assert response.status_code == 200
    assert response.content == copy(17, "segment:finance").body
    assert [switch["id"] for switch in response.json()["switches"]] == ["segment:finance"]
    assert response.headers["ETag"] == ETAG
    assert response.headers["Switchgear-Version"] == "17"
    assert response.headers["Cache-Control"] == "no-cache"
    assert response.headers["Content-Type"] == "application/json"
    assert float(response.headers["Switchgear-Age"]) < 5


def test_head_has_the_same_headers_and_no_body() -> None:
    served = plane("segment:finance")

    head, get = (ask(served, method, PATH, BEARER) for method in ("HEAD", "GET"))

    assert head.status_code == 200
    assert head.content == b""
    for name in ("ETag", "Content-Length", "Content-Type", "Switchgear-Version"):
        assert head.headers[name] == get.headers[name]


@pytest.mark.parametrize(
    "known",
    [
        ETAG,
        f"W/{ETAG}",
        f'"other", {ETAG}',
        f'W/"a,b" ,W/{ETAG},"c"',
        "*",
        " * ",
    ],
)
def test_known_version_is_answered_with_304_and_no_body(known: str) -> None:
    response = ask(plane("segment:finance"), "GET", PATH, {**BEARER, "If-None-Match": known})

    assert response.status_code == 304
    assert response.content == b""
    assert "Content-Type" not in response.headers
    assert response.headers["ETag"] == ETAG
    assert response.headers["Switchgear-Version"] == "17"
    assert response.headers["Cache-Control"] == "no-cache"
    assert "Switchgear-Age" in response.headers


@pytest.mark.parametrize(
    "known",
    [f'"{EPOCH}.16"', f"{EPOCH}.17", '"*"', "", "nonsense", f'"{EPOCH}.17'],
)
def test_other_or_malformed_validator_gets_the_document(known: str) -> None:
    response = ask(plane(), "GET", PATH, {**BEARER, "If-None-Match": known})

    assert response.status_code == 200
    assert response.json()["version"] == 17


def test_age_grows_while_the_database_confirms_nothing() -> None:
    served = plane()
    served.state.confirm(served.state.now() - 90.0)

    for headers in (BEARER, {**BEARER, "If-None-Match": ETAG}):
        assert 90.0 <= float(ask(served, "GET", PATH, headers).headers["Switchgear-Age"]) < 95


def test_other_form_redirects_with_its_query() -> None:
    response = ask(plane(), "GET", f"{PATH}/?wait=25", BEARER)

    assert response.status_code == 308
    assert response.headers["Location"] == "/api/v1/snapshot?wait=25"
    assert "X-Request-ID" in response.headers


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_other_method_is_refused_and_told_which_ones_work(method: str) -> None:
    response = ask(plane(), method, PATH, BEARER)

    assert response.status_code == 405
    assert response.headers["Allow"] == "GET, HEAD"
    assert response.headers["Content-Type"] == "application/problem+json"
    assert response.json()["status"] == 405


def test_start_without_a_database_says_when_to_come_back() -> None:
    response = ask(Plane(), "GET", PATH, BEARER)

    assert response.status_code == 503
    assert int(response.headers["Retry-After"]) >= 1
    assert response.headers["Content-Type"] == "application/problem+json"


def test_tokens_known_but_nothing_published_is_503_too() -> None:
    served = plane()
    served.state.copy = None

    assert ask(served, "GET", PATH, BEARER).status_code == 503
    assert ask(served, "GET", PATH).status_code == 401
