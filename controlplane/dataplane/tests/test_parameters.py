"""Query parameters: unknown ones are refused, known ones cost one cache lookup."""

import pytest

from controlplane.dataplane.application import check_query
from controlplane.dataplane.tests.served import BEARER, ask, plane

SNAPSHOT = "/api/v1/snapshot"


@pytest.mark.parametrize(
    ("method", "path", "name", "message"),
    [
        ("GET", f"{SNAPSHOT}?wiat=5", "wiat", "did you mean wait?"),
        ("GET", f"{SNAPSHOT}?wait=0&epoch=1", "epoch", "allowed: wait."),
        ("GET", f"{SNAPSHOT}/stream?wait=5", "wait", "allowed: none."),
        ("GET", "/api/v1/config?servce=core", "servce", "did you mean service?"),
        ("GET", "/api/v1/degradation?level=2", "level", "allowed: none."),
        ("POST", "/api/v1/check?segment=finance", "segment", "allowed: none."),
    ],
)
def test_unknown_query_parameter_is_refused(
    method: str, path: str, name: str, message: str
) -> None:
    response = ask(plane(), method, path, BEARER)

    assert response.status_code == 400
    assert message in response.json()["errors"][name][0]


def test_many_query_parameters_are_refused_before_they_are_read() -> None:
    query = "&".join(f"p{number}=1" for number in range(60))

    response = ask(plane(), "GET", f"{SNAPSHOT}?{query}", BEARER)

    assert response.status_code == 400
    assert "at most 50" in response.json()["detail"]


@pytest.mark.parametrize("query", ["", "?wait=0", "?wait=0.5&wait=0"])
def test_known_query_parameters_pass(query: str) -> None:
    assert ask(plane(), "GET", SNAPSHOT + query, BEARER).status_code == 200


def test_stranger_is_refused_before_parameters_are_read() -> None:
    assert ask(plane(), "GET", f"{SNAPSHOT}?wiat=5").status_code == 401


def test_parameters_of_openfeature_clients_pass() -> None:
    path = "/ofrep/v1/evaluate/flags?flagConfigEtag=x&flagConfigLastModified=1"

    assert ask(plane(), "POST", path, BEARER).status_code == 200


def test_repeated_query_is_parsed_once() -> None:
    check_query.cache_clear()

    for _ in range(10):
        ask(plane(), "GET", f"{SNAPSHOT}?wait=0", BEARER)

    assert check_query.cache_info().misses == 1
