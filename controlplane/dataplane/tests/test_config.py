"""`/config`: a service's policies and overrides from memory, held until they change."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID

import orjson
import pytest

from controlplane.dataplane.application import Application
from controlplane.dataplane.memory.policies import DependencyPolicy, Policies
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.tests.exchange import Exchange
from controlplane.dataplane.tests.served import (
    BEARER,
    EPOCH,
    EXPIRED,
    REPORTER,
    ask,
    credential,
    plane,
)

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
CORE = "/api/v1/config?service=core"
ORACLE = DependencyPolicy("core", "oracle", 5, b'{"override":null,"timeout_ms":60000}')
REDIS = DependencyPolicy("core", "redis", 7, b'{"override":null,"timeout_ms":500}')
OTHER = DependencyPolicy("gateway", "core", 6, b'{"override":null}')


def serving(*policies: DependencyPolicy, epoch: UUID = EPOCH) -> Plane:
    made = plane()
    made.state.install_policies(Policies.build(epoch, 9, policies))
    return made


def test_a_service_is_told_its_own_dependencies_and_their_highest_version() -> None:
    response = ask(serving(REDIS, ORACLE, OTHER), "GET", CORE, BEARER)

    assert response.status_code == 200
    assert response.headers["ETag"] == f'"{EPOCH}.c7"'
    assert response.headers["Cache-Control"] == "no-cache"
    assert float(response.headers["Switchgear-Age"]) >= 0
    assert response.json() == {
        "service": "core",
        "version": 7,
        "dependencies": {
            "core->oracle": {"override": None, "timeout_ms": 60000},
            "core->redis": {"override": None, "timeout_ms": 500},
        },
    }


def test_a_service_without_dependencies_is_told_so_at_version_0() -> None:
    response = ask(serving(ORACLE), "GET", "/api/v1/config?service=정산", BEARER)

    assert response.json() == {"service": "정산", "version": 0, "dependencies": {}}
    assert response.headers["ETag"] == f'"{EPOCH}.c0"'


def test_a_removed_dependency_is_left_out_and_is_a_new_version() -> None:
    response = ask(serving(ORACLE, REDIS._replace(text=b"")), "GET", CORE, BEARER)

    assert response.json()["version"] == 7
    assert list(response.json()["dependencies"]) == ["core->oracle"]


@pytest.mark.parametrize("query", ["", "?service=", "?service=a%20b", "?service=a/b"])
def test_no_sane_service_is_400_that_names_the_field(query: str) -> None:
    response = ask(serving(ORACLE), "GET", f"/api/v1/config{query}", BEARER)

    assert response.status_code == 400
    assert set(response.json()["errors"]) == {"service"}


@pytest.mark.parametrize(
    ("tag", "status"),
    [
        (f'"{EPOCH}.c7"', 304),
        (f'W/"{EPOCH}.c7"', 304),
        ("*", 304),
        (f'"{EPOCH}.c8"', 304),  # From a replica that is ahead.
        (f'"{EPOCH}.c6"', 200),
        (f'"{EPOCH}.7"', 200),  # A snapshot's.
        (f'"{UUID(int=7)}.c7"', 200),
        ('"x"', 200),
    ],
)
def test_whoever_has_it_is_told_304(tag: str, status: int) -> None:
    response = ask(serving(ORACLE, REDIS), "GET", CORE, {**BEARER, "If-None-Match": tag})

    assert response.status_code == status
    assert response.headers["ETag"] == f'"{EPOCH}.c7"'


def test_any_of_three_scopes_will_do() -> None:
    served = serving(ORACLE)
    breakers, switches = "sg_breakers01_secret", "sg_switches01_secret"
    tokens = dict(served.state.tokens or {})
    tokens[b"breakers01"] = credential(breakers, "breakers:read")
    tokens[b"switches01"] = credential(switches, "switches:write")
    served.state.install_tokens(2, tokens)

    for token, status in ((breakers, 200), (REPORTER, 200), (switches, 403), (EXPIRED, 401)):
        assert ask(served, "GET", CORE, {"X-API-Key": token}).status_code == status


def test_before_anything_is_known_it_is_503() -> None:
    response = ask(plane(), "GET", CORE, BEARER)

    assert (response.status_code, response.headers["Retry-After"]) == (503, "1")


def test_the_other_form_redirects_and_head_has_no_body() -> None:
    assert ask(serving(ORACLE), "GET", "/api/v1/config/?service=core", BEARER).status_code == 308
    head = ask(serving(ORACLE), "HEAD", CORE, BEARER)
    assert (head.status_code, head.content) == (200, b"")


def test_a_held_poll_is_answered_by_news_of_this_service_only() -> None:
    served = serving(ORACLE)
    headers = {**BEARER, "If-None-Match": f'"{EPOCH}.c5"'}

    async def polled() -> tuple[int, bytes]:
        async with Exchange(Application(served), f"{CORE}&wait=20", headers) as poll:
            served.state.install_policies(served.state.policies.with_changes(8, [OTHER]))
            with pytest.raises(TimeoutError):
                await poll.receive_status(within=0.2)
            served.state.install_policies(served.state.policies.with_changes(10, [REDIS]))
            return await poll.receive_status(), await poll.part()

    status, body = asyncio.run(polled())

    assert status == 200
    assert orjson.loads(body)["version"] == 7


def test_a_held_poll_without_news_is_304_in_time() -> None:
    headers = {**BEARER, "If-None-Match": f'"{EPOCH}.c5"'}

    began = time.monotonic()
    response = ask(serving(ORACLE), "GET", f"{CORE}&wait=0.3", headers)

    assert response.status_code == 304
    assert 0.25 <= time.monotonic() - began < 3


def test_a_reporters_token_that_is_revoked_is_let_go() -> None:
    served = serving(ORACLE)
    headers = {"X-API-Key": REPORTER, "If-None-Match": f'"{EPOCH}.c5"'}

    async def polled() -> int:
        async with Exchange(Application(served), f"{CORE}&wait=20", headers) as poll:
            served.state.install_tokens(2, dict(served.state.tokens or {}))
            with pytest.raises(TimeoutError):
                await poll.receive_status(within=0.2)
            served.state.install_tokens(3, {})
            return await poll.receive_status()

    assert asyncio.run(polled()) == 401


def cpu_seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def test_ten_thousand_dependencies_cost_no_one_much() -> None:
    rows = [
        DependencyPolicy(f"c{n % 100}", f"s{n}", 1, b'{"override":null}') for n in range(10_000)
    ]

    took = [cpu_seconds(lambda: Policies.build(EPOCH, 1, rows)) for _ in range(3)]
    policies = Policies.build(EPOCH, 1, rows)
    policies.document_for("c1")
    one = [
        cpu_seconds(lambda: policies.with_changes(2, [DependencyPolicy("c1", "s1", 2, b"{}")]))
        for _ in range(3)
    ]
    after = policies.with_changes(2, [DependencyPolicy("c1", "s1", 2, b"{}")])

    assert min(took) < 0.5
    assert min(one) < 0.05
    assert (policies.document_for("c1").version, after.document_for("c1").version) == (1, 2)
    assert after.document_for("c2") is not None
