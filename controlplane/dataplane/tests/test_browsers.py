"""What protects browsers: headers of every answer with a body, and names that are ours."""

import pytest
from django.conf import settings

from controlplane.core.hosts import AllowedHosts
from controlplane.dataplane.call import POLICY
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.tests.served import BEARER, ETAG, REPORTER, SCRAPER, ask, plane

EVIL = {"Host": "evil.example"}
WANTED = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Content-Security-Policy": POLICY,
}


def named() -> Plane:
    """A plane that is known as `switchgear.example` alone."""
    made = plane("segment:finance")
    made.state.hosts = AllowedHosts(["switchgear.example"])
    return made


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/api/v1/snapshot", BEARER, 200),
        ("GET", "/api/v1/snapshot", {}, 401),
        ("GET", "/api/v1/snapshot/", BEARER, 308),
        ("POST", "/api/v1/check", BEARER, 400),
        ("GET", "/health/live", {}, 200),
        ("GET", "/nowhere", {}, 404),
        ("GET", "/", {}, 200),
    ],
)
def test_every_answer_but_304_has_the_headers_for_browsers(
    method: str, path: str, headers: dict[str, str], status: int
) -> None:
    answer = ask(plane("segment:finance"), method, path, headers)

    assert answer.status_code == status
    assert {name: answer.headers.get(name) for name in WANTED} == WANTED


def test_a_poll_without_news_is_as_short_as_before() -> None:
    answer = ask(plane(), "GET", "/api/v1/snapshot", {**BEARER, "If-None-Match": ETAG})

    assert answer.status_code == 304
    assert not WANTED.keys() & {name.title() for name in answer.headers}


def test_policy_is_that_of_the_console() -> None:
    directives = settings.CONTENT_SECURITY_POLICY["DIRECTIVES"]
    theirs = {f"{name} {' '.join(values)}" for name, values in directives.items()}

    assert set(POLICY.split("; ")) == theirs


@pytest.mark.parametrize(
    ("method", "path", "token"),
    [
        ("GET", "/api/v1/snapshot", None),
        ("GET", "/api/v1/snapshot", BEARER),
        ("GET", "/api/v1/snapshot/stream", BEARER),
        ("POST", "/api/v1/check", BEARER),
        ("POST", "/api/v1/report", {"X-API-Key": REPORTER}),
        ("POST", "/ofrep/v1/evaluate/flags", BEARER),
    ],
)
def test_a_name_that_is_not_ours_is_refused(
    method: str, path: str, token: dict[str, str] | None
) -> None:
    answer = ask(named(), method, path, {**EVIL, **(token or {})}, content=b"{}")

    assert answer.status_code == 400
    assert "ALLOWED_HOSTS" in answer.text


def test_our_name_is_answered() -> None:
    headers = {**BEARER, "Host": "switchgear.example:8001"}

    assert ask(named(), "GET", "/api/v1/snapshot", headers).status_code == 200


@pytest.mark.parametrize(
    ("path", "status"), [("/health/live", 200), ("/health/ready/data", 200), ("/metrics", 200)]
)
def test_probes_and_scrapes_by_a_pods_address_are_answered(path: str, status: int) -> None:
    headers = {"Host": "10.244.7.31:8000", "X-API-Key": SCRAPER}

    assert ask(named(), "GET", path, headers).status_code == status
