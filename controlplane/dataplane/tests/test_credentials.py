"""Tokens in memory: authentication, authorization, and their errors."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.errors import Unauthenticated
from controlplane.dataplane.memory.credentials import authenticate
from controlplane.dataplane.tests.served import (
    BEARER,
    EXPIRED,
    READER,
    REPORTER,
    ask,
    credential,
    plane,
)

PATH = "/api/v1/snapshot"


@pytest.mark.parametrize(
    "headers",
    [
        BEARER,
        {"X-API-Key": READER},
        {"Authorization": f"bearer {READER}"},
        {"Authorization": f"Bearer  {READER}"},
        {"Authorization": "Basic eDp5", "X-API-Key": READER},
    ],
)
def test_token_is_taken_from_either_header(headers: dict[str, str]) -> None:
    assert ask(plane(), "GET", PATH, headers).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer "},
        {"Authorization": READER},
        {"Authorization": "Basic eDp5"},
        {"X-API-Key": ""},
        {"X-API-Key": "sg_reader0001"},
        {"X-API-Key": "sg_reader0001_"},
        {"X-API-Key": READER[:-1]},
        {"X-API-Key": READER + "x"},
        {"X-API-Key": READER.replace("sg_", "xx_")},
        {"X-API-Key": READER.replace("reader", "nobody")},
        {"X-API-Key": EXPIRED},
        {"Authorization": f"Bearer {EXPIRED}", "X-API-Key": READER},
    ],
)
def test_missing_or_wrong_token_is_401_as_a_problem(headers: dict[str, str]) -> None:
    response = ask(plane(), "GET", PATH, headers)

    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == 'Bearer realm="switchgear"'
    assert response.headers["Content-Type"] == "application/problem+json"
    assert json.loads(response.content)["status"] == 401
    assert set(response.json()) == {"type", "title", "status", "detail"}


def test_token_without_the_scope_is_403() -> None:
    response = ask(plane(), "GET", PATH, {"X-API-Key": REPORTER})

    assert response.status_code == 403
    assert "switches:read" in response.json()["detail"]


def test_expiry_is_the_moment_it_names() -> None:
    ends = 1_800_000_000.0
    token = credential(READER, "switches:read")
    table = {b"reader0001": replace(token, expires_at=ends)}
    headers = {b"x-api-key": READER.encode()}

    assert authenticate(table, headers, "switches:read", clock=lambda: ends - 0.001)
    with pytest.raises(Unauthenticated, match="expired"):
        authenticate(table, headers, "switches:read", clock=lambda: ends)


@given(st.binary(max_size=80))
def test_no_other_bytes_get_in(token: bytes) -> None:
    table = {b"reader0001": credential(READER, "switches:read")}
    if token != READER.encode():
        with pytest.raises(Unauthenticated):
            authenticate(table, {b"x-api-key": token}, "switches:read")


@given(st.binary(min_size=1, max_size=80))
def test_no_other_secret_gets_in(secret: bytes) -> None:
    table = {b"reader0001": credential(READER, "switches:read")}
    if secret != READER.split("_", 2)[2].encode():
        with pytest.raises(Unauthenticated):
            authenticate(table, {b"x-api-key": b"sg_reader0001_" + secret}, "switches:read")


def test_only_a_token_that_got_in_counts_as_used() -> None:
    served = plane()
    for headers in ({"X-API-Key": READER}, {"X-API-Key": REPORTER}, {"X-API-Key": EXPIRED}):
        ask(served, "GET", PATH, headers)

    assert served.state.used_tokens == {credential(READER).token_id}
