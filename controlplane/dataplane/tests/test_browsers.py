"""The headers that protect browsers, on every answer that one could render."""

import pytest
from django.conf import settings

from controlplane.dataplane.serving.call import POLICY
from controlplane.dataplane.tests.served import BEARER, ETAG, ask, plane

WANTED = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Content-Security-Policy": POLICY,
}


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/api/v1/snapshot", {}, 401),
        ("GET", "/api/v1/snapshot/", BEARER, 308),
        ("POST", "/api/v1/check", BEARER, 400),
        ("GET", "/nowhere", {}, 404),
        ("GET", "/", {}, 200),
    ],
)
def test_answers_other_than_plain_json_have_the_headers_for_browsers(
    method: str, path: str, headers: dict[str, str], status: int
) -> None:
    response = ask(plane("segment:finance"), method, path, headers)

    assert response.status_code == status
    assert {name: response.headers.get(name) for name in WANTED} == WANTED


@pytest.mark.parametrize("path", ["/api/v1/snapshot", "/health/live"])
def test_json_says_its_type_for_certain_and_nothing_about_frames(path: str) -> None:
    response = ask(plane("segment:finance"), "GET", path, BEARER)

    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/json"
    assert {name for name in WANTED if name in response.headers} == {"X-Content-Type-Options"}


def test_a_poll_without_news_is_as_short_as_before() -> None:
    response = ask(plane(), "GET", "/api/v1/snapshot", {**BEARER, "If-None-Match": ETAG})

    assert response.status_code == 304
    assert not WANTED.keys() & {name.title() for name in response.headers}


def test_policy_is_that_of_the_console() -> None:
    directives = settings.CONTENT_SECURITY_POLICY["DIRECTIVES"]
    theirs = {f"{name} {' '.join(values)}" for name, values in directives.items()}

    assert set(POLICY.split("; ")) == theirs


@pytest.mark.parametrize("path", ["/api/v1/snapshot", "/health/ready/data"])
def test_any_name_is_answered_because_a_token_is_no_browsers(path: str) -> None:
    headers = {**BEARER, "Host": "10.244.7.31:8000"}

    assert ask(plane("segment:finance"), "GET", path, headers).status_code == 200
