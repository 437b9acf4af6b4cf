"""Requests of browsers from pages of other origins."""

import pytest

from controlplane.dataplane.plane import Plane
from controlplane.dataplane.tests.served import BEARER, ETAG, ask, plane

SHOP = "https://shop.example.org"
PREFLIGHT = {
    "Origin": SHOP,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization, content-type, if-none-match",
}
OPEN_PATHS = [
    ("POST", "/ofrep/v1/evaluate/flags"),
    ("POST", "/ofrep/v1/evaluate/flags/segment:finance"),
    ("GET", "/ofrep/v1/events"),
    ("GET", "/api/v1/snapshot"),
    ("GET", "/api/v1/snapshot/stream"),
]


def plane_for(*origins: str) -> Plane:
    made = plane("segment:finance")
    made.state.cors_origins = frozenset(origin.encode() for origin in origins)
    return made


@pytest.mark.parametrize(("method", "path"), OPEN_PATHS)
def test_preflight_of_a_listed_origin_is_answered_without_a_token(method: str, path: str) -> None:
    response = ask(plane_for(SHOP), "OPTIONS", path, PREFLIGHT)

    allowed_headers = response.headers["Access-Control-Allow-Headers"].split(", ")
    assert response.status_code == 204
    assert response.headers["Access-Control-Allow-Origin"] == SHOP
    assert method in response.headers["Access-Control-Allow-Methods"].split(", ")
    assert {"authorization", "content-type", "if-none-match"} <= set(allowed_headers)
    assert "Access-Control-Allow-Credentials" not in response.headers


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("POST", "/ofrep/v1/evaluate/flags", BEARER, 200),
        ("POST", "/ofrep/v1/evaluate/flags/segment:nobody", BEARER, 404),
        ("POST", "/ofrep/v1/evaluate/flags", {}, 401),
        ("GET", "/api/v1/snapshot", BEARER, 200),
        ("GET", "/api/v1/snapshot", {**BEARER, "If-None-Match": ETAG}, 304),
    ],
)
def test_pages_of_a_listed_origin_can_read_responses_and_their_etag(
    method: str, path: str, headers: dict[str, str], status: int
) -> None:
    response = ask(
        plane_for("https://other.example.org", SHOP), method, path, {**headers, "Origin": SHOP}
    )

    assert response.status_code == status
    assert response.headers["Access-Control-Allow-Origin"] == SHOP
    assert "etag" in response.headers["Access-Control-Expose-Headers"].split(", ")
    assert "origin" in response.headers["Vary"]


def test_other_origins_get_no_cors_headers() -> None:
    served = plane_for(SHOP)
    stranger = {"Origin": "https://shop.example.org.evil.example"}

    preflight = ask(served, "OPTIONS", "/api/v1/snapshot", {**PREFLIGHT, **stranger})
    read = ask(served, "GET", "/api/v1/snapshot", {**BEARER, **stranger})

    assert preflight.status_code == 405
    assert read.status_code == 200
    assert read.headers["Vary"].endswith("origin")
    for response in (preflight, read):
        assert not [name for name in response.headers if name.startswith("access-control")]


def test_nothing_changes_without_the_setting() -> None:
    served = plane("segment:finance")

    preflight = ask(served, "OPTIONS", "/api/v1/snapshot", PREFLIGHT)
    read = ask(served, "GET", "/api/v1/snapshot", {**BEARER, "Origin": SHOP})

    assert preflight.status_code == 405
    assert not [name for name in read.headers if name.startswith("access-control")]
    assert "origin" not in read.headers["Vary"]


@pytest.mark.parametrize("path", ["/api/v1/check", "/api/v1/report", "/api/v1/config"])
def test_other_paths_stay_closed(path: str) -> None:
    assert ask(plane_for(SHOP), "OPTIONS", path, PREFLIGHT).status_code == 405
