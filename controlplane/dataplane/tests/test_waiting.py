"""`?wait=`: a poll is answered as soon as its document changes."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from controlplane.dataplane.application import Application
from controlplane.dataplane.memory import listeners
from controlplane.dataplane.serving import held_requests
from controlplane.dataplane.tests.exchange import Exchange
from controlplane.dataplane.tests.served import BEARER, EPOCH, ETAG, ask, copy, credential, plane

KNOWN = {**BEARER, "If-None-Match": ETAG}
OTHER_EPOCH = UUID("0e5d5c1e-77a8-4d1a-a1c1-5b7f7d6f0b42")
SOON = 0.15


@pytest.fixture
def _hanging_up_is_noticed_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_requests, "WATCH_AFTER_SECONDS", 0.05)


def waiting(path: str = "/api/v1/snapshot?wait=20", **headers: str):
    served = plane("segment:finance")
    return served, Exchange(Application(served), path, {**KNOWN, **headers})


def test_a_known_version_is_held_until_the_next_one() -> None:
    async def run() -> None:
        served, poll = waiting()
        async with poll:
            await asyncio.sleep(SOON)
            assert not poll.task.done()
            served.state.install_copy(copy(18, "feature:search"), served.state.now())
            assert await poll.receive_status() == 200
            assert poll.headers["switchgear-version"] == "18"
            assert b"feature:search" in await poll.part()

    asyncio.run(run())


def test_nothing_new_ends_in_304_after_the_time_asked_for() -> None:
    async def run() -> None:
        began = time.monotonic()
        _, poll = waiting("/api/v1/snapshot?wait=0.2")
        async with poll:
            assert await poll.receive_status() == 304
            assert 0.2 <= time.monotonic() - began < 2
            assert poll.headers["etag"] == ETAG

    asyncio.run(run())


@pytest.mark.parametrize("known", ["", '"something-else"', f'"{OTHER_EPOCH}.99"', f'"{EPOCH}.16"'])
def test_a_version_the_caller_lacks_is_not_held(known: str) -> None:
    async def run() -> None:
        headers = {**BEARER, "If-None-Match": known} if known else BEARER
        async with Exchange(Application(plane()), "/api/v1/snapshot?wait=20", headers) as poll:
            assert await poll.receive_status(1) == 200

    asyncio.run(run())


@pytest.mark.usefixtures("_hanging_up_is_noticed_soon")
@pytest.mark.parametrize(
    "known", [f'"{EPOCH}.18"', f'W/"{EPOCH}.17"', f'"other", "{EPOCH}.17"', f'"{EPOCH}.{10**17}"']
)
def test_a_version_the_caller_has_or_that_is_ahead_is_held(known: str) -> None:
    async def run() -> None:
        _, poll = waiting(**{"If-None-Match": known})
        async with poll:
            await asyncio.sleep(SOON)
            assert not poll.task.done()

    asyncio.run(run())


def test_a_caller_ahead_of_this_replica_is_never_sent_back() -> None:
    async def run() -> None:
        served, poll = waiting(**{"If-None-Match": f'"{EPOCH}.19"'})
        async with poll:
            await asyncio.sleep(0)
            served.state.install_copy(copy(18), served.state.now())
            served.state.install_copy(copy(19), served.state.now())
            await asyncio.sleep(SOON)
            assert not poll.task.done()
            served.state.install_copy(copy(20), served.state.now())
            assert await poll.receive_status() == 200
            assert poll.headers["switchgear-version"] == "20"

    asyncio.run(run())


def test_without_wait_a_caller_ahead_of_this_replica_keeps_what_it_has() -> None:
    response = ask(plane(), "GET", "/api/v1/snapshot", {**BEARER, "If-None-Match": f'"{EPOCH}.18"'})

    assert response.status_code == 304


def test_a_revoked_token_ends_the_wait_with_401() -> None:
    async def run() -> None:
        served, poll = waiting()
        async with poll:
            await asyncio.sleep(0)
            served.state.install_tokens(2, {})
            assert await poll.receive_status() == 401

    asyncio.run(run())


def test_a_token_that_expires_ends_the_wait_with_401() -> None:
    async def run() -> None:
        served, poll = waiting()
        soon = datetime.now(UTC) + timedelta(seconds=0.3)
        token = BEARER["Authorization"].removeprefix("Bearer ")
        table = {b"reader0001": credential(token, "switches:read", expires_at=soon)}
        served.state.install_tokens(2, table)
        async with poll:
            assert await poll.receive_status(2) == 401

    asyncio.run(run())


@pytest.mark.usefixtures("_hanging_up_is_noticed_soon")
def test_a_change_of_other_tokens_does_not_end_the_wait() -> None:
    async def run() -> None:
        served, poll = waiting()
        async with poll:
            await asyncio.sleep(0)
            assert served.state.tokens is not None
            served.state.install_tokens(2, dict(served.state.tokens))
            await asyncio.sleep(SOON)
            assert not poll.task.done()

    asyncio.run(run())


def test_a_caller_that_hangs_up_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_requests, "WATCH_AFTER_SECONDS", 0.05)

    async def run() -> None:
        served, poll = waiting()
        async with poll:
            await asyncio.sleep(0.02)
            assert len(served.state.listeners) == 1
            poll.hang_up()
            await asyncio.wait_for(poll.task, 1)
            assert len(served.state.listeners) == 0

    asyncio.run(run())


def test_more_than_may_be_held_are_told_to_come_back_and_the_held_ones_stay() -> None:
    async def run() -> None:
        served, poll = waiting()
        served.state.listeners.most = 1
        async with poll:
            await asyncio.sleep(0.02)
            async with Exchange(Application(served), "/api/v1/snapshot?wait=5", KNOWN) as second:
                assert await second.receive_status() == 503
                assert 1 <= int(second.headers["retry-after"]) <= 10
            async with Exchange(Application(served), "/api/v1/snapshot", KNOWN) as plain:
                assert await plain.receive_status() == 304
            assert not poll.task.done()
            served.state.install_copy(copy(18), served.state.now())
            assert await poll.receive_status() == 200

    asyncio.run(run())


def test_a_process_that_ends_lets_everybody_go() -> None:
    async def run() -> None:
        served, poll = waiting()
        async with poll:
            await asyncio.sleep(0.02)
            served.state.listeners.close()
            assert await poll.receive_status(1) == 304

    asyncio.run(run())


@pytest.mark.parametrize("wait", ["soon", "-1", "1e9", "NaN", "", "١٢"])
def test_a_wait_that_is_no_number_of_seconds_is_refused(wait: str) -> None:
    response = ask(plane(), "GET", f"/api/v1/snapshot?wait={wait}", KNOWN)

    assert response.status_code == 400
    assert "wait" in response.json()["errors"]


def test_zero_seconds_are_no_wait() -> None:
    assert ask(plane(), "GET", "/api/v1/snapshot?wait=0", KNOWN).status_code == 304


def test_many_are_sent_the_same_bytes_and_others_get_in_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listeners, "WOKEN_AT_ONCE", 50)

    async def run() -> None:
        served = plane()
        application = Application(served)
        polls = [Exchange(application, "/api/v1/snapshot?wait=20", KNOWN) for _ in range(1000)]
        for poll in polls:
            await poll.__aenter__()
        while len(served.state.listeners) < 1000:
            await asyncio.sleep(0.01)
        served.state.install_copy(copy(18, "segment:finance"), served.state.now())
        async with Exchange(application, "/health/live", {}) as other:
            assert await other.receive_status() == 200
        assert any(not poll.task.done() for poll in polls)
        bodies = set()
        for poll in polls:
            assert await poll.receive_status() == 200
            bodies.add(id(await poll.part()))
            await poll.__aexit__(None, None, None)
        assert len(bodies) == 1

    asyncio.run(run())
