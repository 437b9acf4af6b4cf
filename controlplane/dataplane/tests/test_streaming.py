"""`/snapshot/stream`: every version as it comes, rendered once for all listeners."""

import asyncio
import re
from uuid import UUID

import pytest

from controlplane.dataplane.application import Application
from controlplane.dataplane.memory import listeners
from controlplane.dataplane.memory.served_copy import MAX_CHUNK_BYTES
from controlplane.dataplane.serving import held_requests
from controlplane.dataplane.tests.exchange import Exchange
from controlplane.dataplane.tests.served import (
    BEARER,
    EPOCH,
    REPORTER,
    ask,
    copy,
    plane,
)

PATH = "/api/v1/snapshot/stream"
SOON = 0.15
OTHER_EPOCH = UUID("0e5d5c1e-77a8-4d1a-a1c1-5b7f7d6f0b42")


def test_the_present_version_comes_at_once_with_a_hint_when_to_return() -> None:
    async def run() -> None:
        served = plane("segment:finance")
        async with Exchange(Application(served), PATH, BEARER) as stream:
            assert await stream.receive_status() == 200
            assert stream.headers["content-type"].startswith("text/event-stream")
            hint = re.fullmatch(rb"retry: (\d+)\n\n", await stream.part())
            assert hint is not None
            assert 500 <= int(hint[1]) <= 5000
            assert served.state.copy is not None
            assert await stream.part() == (
                f"id: {EPOCH}.17\nevent: snapshot\ndata: ".encode()
                + served.state.copy.body
                + b"\n\n"
            )

    asyncio.run(run())


def test_hints_when_to_return_differ() -> None:
    async def run() -> None:
        application, hints = Application(plane()), set()
        for _ in range(20):
            async with Exchange(application, PATH, BEARER) as stream:
                await stream.receive_status()
                hints.add(await stream.part())
        assert len(hints) > 10

    asyncio.run(run())


def test_each_new_version_follows_and_a_change_of_tokens_sends_nothing() -> None:
    async def run() -> None:
        served = plane()
        async with Exchange(Application(served), PATH, BEARER) as stream:
            await stream.receive_status()
            await stream.part()
            assert b"17" in await stream.part()
            assert served.state.tokens is not None
            served.state.install_tokens(2, dict(served.state.tokens))
            for version in (18, 19):
                served.state.install_copy(copy(version), served.state.now())
                assert (await stream.part()).startswith(
                    b"id: %b.%d\n" % (str(EPOCH).encode(), version)
                )

    asyncio.run(run())


@pytest.mark.parametrize("version", [17, 18])
def test_a_returning_client_that_has_this_version_or_a_newer_one_waits(version: int) -> None:
    async def run() -> None:
        served = plane()
        headers = {**BEARER, "Last-Event-ID": f"{EPOCH}.{version}"}
        async with Exchange(Application(served), PATH, headers) as stream:
            await stream.receive_status()
            await stream.part()
            with pytest.raises(TimeoutError):
                await stream.part(SOON)
            served.state.install_copy(copy(19), served.state.now())
            assert b".19\n" in await stream.part()

    asyncio.run(run())


@pytest.mark.parametrize("mark", [f"{EPOCH}.16", f"{OTHER_EPOCH}.99", "garbage", f"{EPOCH}.x"])
def test_a_returning_client_that_has_something_else_gets_the_present_one(mark: str) -> None:
    async def run() -> None:
        async with Exchange(
            Application(plane()), PATH, {**BEARER, "Last-Event-ID": mark}
        ) as stream:
            await stream.receive_status()
            await stream.part()
            assert b".17\n" in await stream.part()

    asyncio.run(run())


def test_quiet_times_are_filled_with_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_requests, "QUIET_SECONDS", 0.1)

    async def run() -> None:
        async with Exchange(Application(plane()), PATH, BEARER) as stream:
            await stream.receive_status()
            await stream.part()
            await stream.part()
            for _ in range(3):
                assert (await stream.part(1)).startswith(b":")

    asyncio.run(run())


def test_a_client_that_does_not_read_gets_the_latest_when_it_does() -> None:
    async def run() -> None:
        served = plane()
        async with Exchange(Application(served), PATH, BEARER, slow=True) as stream:
            for version in range(18, 60):
                await asyncio.sleep(0)
                served.state.install_copy(copy(version), served.state.now())
            stream.reads.set()
            await stream.receive_status()
            await stream.part()
            assert b".59\n" in await stream.part()
            with pytest.raises(TimeoutError):
                await stream.part(SOON)

    asyncio.run(run())


def test_a_client_that_does_not_read_holds_nobody_and_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listeners, "STUCK_SECONDS", 0.2)
    monkeypatch.setattr(listeners, "SWEEP_SECONDS", 0.05)

    async def run() -> None:
        served = plane()
        application = Application(served)
        async with Exchange(application, PATH, BEARER) as stuck:
            await stuck.receive_status()
            await stuck.part()
            await stuck.part()
            stuck.reads.clear()
            async with Exchange(application, PATH, BEARER) as other:
                await other.receive_status()
                await other.part()
                await other.part()
                served.state.install_copy(copy(18), served.state.now())
                assert b".18\n" in await other.part(0.1)
                await asyncio.sleep(0.4)
                assert len(served.state.listeners) == 1
            stuck.reads.set()

    asyncio.run(run())


def test_a_revoked_token_ends_the_stream() -> None:
    async def run() -> None:
        served = plane()
        async with Exchange(Application(served), PATH, BEARER) as stream:
            await stream.receive_status()
            await stream.part()
            await stream.part()
            served.state.install_tokens(2, {})
            assert await stream.part() == b""
            await asyncio.wait_for(stream.task, 1)

    asyncio.run(run())


def test_a_token_revoked_while_the_stream_begins_gets_nothing() -> None:
    async def run() -> None:
        served = plane("segment:finance")
        async with Exchange(Application(served), PATH, BEARER, slow=True) as stream:
            await asyncio.sleep(0.02)
            served.state.install_tokens(2, {})
            stream.reads.set()
            await stream.receive_status()
            assert (await stream.part()).startswith(b"retry:")
            assert await stream.part() == b""

    asyncio.run(run())


def test_a_large_version_is_sent_in_pieces_that_make_one_event() -> None:
    async def run() -> None:
        served = plane(*(f"segment:{number:0100d}" for number in range(400)))
        assert served.state.copy is not None
        async with Exchange(Application(served), PATH, BEARER) as stream:
            await stream.receive_status()
            await stream.part()
            parts = [await stream.part() for _ in served.state.copy.event]
        assert len(parts) > 2
        assert max(map(len, parts)) <= MAX_CHUNK_BYTES
        event = b"".join(parts)
        assert event.endswith(b"data: " + served.state.copy.body + b"\n\n")

    asyncio.run(run())


def test_a_stream_past_the_limit_is_turned_away() -> None:
    async def run() -> None:
        served = plane()
        served.state.listeners.most = 0
        async with Exchange(Application(served), PATH, BEARER) as stream:
            assert await stream.receive_status() == 503
            assert "retry-after" in stream.headers

    asyncio.run(run())


def test_a_token_without_the_scope_is_refused() -> None:
    assert ask(plane(), "GET", PATH, {"X-API-Key": REPORTER}).status_code == 403


def test_before_the_first_snapshot_there_is_no_stream() -> None:
    served = plane()
    served.state.copy = None

    assert ask(served, "GET", PATH, BEARER).status_code == 503


def test_head_is_refused_with_what_is_possible() -> None:
    response = ask(plane(), "HEAD", PATH, BEARER)

    assert response.status_code == 405
    assert response.headers["allow"] == "GET"
