"""A data plane that hangs, answers with garbage or is of an older version delays no other."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from controlplane.dataplane.emergency import peers as peers_module
from controlplane.dataplane.emergency.host_lookup import HostLookup
from controlplane.dataplane.tests.lines import Background, background, wait_until
from controlplane.dataplane.tests.neighbors import Neighbor, free_port, neighborhood

HEAD = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\n"


async def send_nothing(_writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


async def hang_up(_writer: asyncio.StreamWriter) -> None:
    pass


async def send_garbage(writer: asyncio.StreamWriter) -> None:
    writer.write(b"\x00\xff" * 100)


async def answer_500(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD % b"500 Oops" + b"content-length: 2\r\n\r\n{}")


async def answer_unsigned(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD % b"200 OK" + b"content-length: 2\r\n\r\n{}")


async def refuse(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD % b"401 No" + b"content-length: 2\r\n\r\n[]")


async def redirect(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD % b"307 There" + b"location: /health/live\r\ncontent-length: 0\r\n\r\n")


async def answer_endlessly(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD % b"200 OK" + b"transfer-encoding: chunked\r\n\r\n")
    chunk = b"x" * 65536
    while True:
        writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        await writer.drain()


async def trickle(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD % b"200 OK" + b"content-length: 100000\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.1)


async def answer_404(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD % b"404 Not Found" + b"content-length: 2\r\n\r\n{}")


Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


class Strange:
    """A server that treats each connection alike."""

    def __init__(self, loop: Background, answer: Answer) -> None:
        self._answer = answer
        loop.run(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._handle, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await self._answer(writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@pytest.fixture
def loop() -> Iterator[Background]:
    with background() as made:
        yield made


STRANGE: list[Answer] = [
    send_nothing, hang_up, send_garbage, answer_500, answer_unsigned, refuse, redirect,
    answer_endlessly, trickle,
]  # fmt: skip


@pytest.mark.slow  # Peers that never answer are given up after 4 s, twice.
@pytest.mark.parametrize("answer", STRANGE, ids=lambda answer: answer.__name__)
def test_a_strange_peer_delays_neither_orders_nor_the_other_plane(
    loop: Background, tmp_path: Path, answer: Answer
) -> None:
    strange = Strange(loop, answer)
    one, two = (Neighbor(loop, name, tmp_path / name) for name in ("dp-1", "dp-2"))
    try:
        with capture_logs() as logs:
            for each in (one, two):
                each.start(one.url, two.url, strange.url)
            wait_until(lambda: sum(peer.plane != "" for peer in one.plane.peers.others()) == 1, 5)
            began = time.monotonic()
            response = one.order().json()
            took = time.monotonic() - began
            (lost,) = (peer for peer in one.plane.peers.others() if not peer.plane)
            # The other plane may have failed once, too, before it started.
            for each in (one, two):
                wait_until(lambda n=each: n.plane.state.exchanges["failed"] >= 2, 20)  # type: ignore[misc]
    finally:
        one.stop()
        two.stop()

    assert response["accepted_by"] == ["dp-1", "dp-2"]
    assert response["planes"] == 3
    assert took < 1.4
    assert lost.is_reachable is False
    told = [line for line in logs if line.get("url") == strange.url]
    assert [line["event"] for line in told] == ["peer.unreachable"] * 2  # Once by each plane.


def test_an_older_version_counts_as_a_plane_and_is_logged_once(
    loop: Background, tmp_path: Path
) -> None:
    older = Strange(loop, answer_404)
    one = Neighbor(loop, "dp-1", tmp_path)
    with capture_logs() as logs:
        one.start(one.url, older.url)
        try:
            wait_until(lambda: any(peer.is_older for peer in one.plane.peers.others()), 5)
            response = one.order().json()
            again = one.order("segment:finance").json()
        finally:
            one.stop()

    assert (response["accepted_by"], response["planes"]) == (["dp-1"], 2)
    assert again["planes"] == 2
    assert [line["event"] for line in logs if line.get("url") == older.url] == ["peer.older"]
    assert one.plane.state.peers is None


def test_a_frozen_plane_delays_an_order_by_a_second_at_most_and_has_it_when_it_thaws(
    tmp_path: Path,
) -> None:
    with neighborhood(tmp_path) as planes:
        for numbers in ((1, 2), (2, 1), (3, 2), (2, 3)):
            planes.lines[numbers].freeze()
        time.sleep(0.1)

        began = time.monotonic()
        response = planes[1].order().json()
        took = time.monotonic() - began

        assert response["accepted_by"] == ["dp-1", "dp-3"]
        assert took < 1.4
        assert planes[3].serves()
        for line in planes.lines.values():
            line.thaw()
        wait_until(planes[2].serves, 7)


def test_addresses_of_one_plane_count_once_and_its_own_not_at_all(
    loop: Background, tmp_path: Path
) -> None:
    one, two = (Neighbor(loop, name, tmp_path / name) for name in ("dp-1", "dp-2"))
    same = f"http://localhost:{two.port}"
    try:
        for each in (one, two):
            each.start(one.url, two.url, same)
        wait_until(lambda: one.plane.peers.count_planes() == 2, 5)
        response = one.order().json()
    finally:
        one.stop()
        two.stop()

    assert (response["accepted_by"], response["planes"]) == (["dp-1", "dp-2"], 2)


def test_unreachable_planes_are_a_cause_of_degradation_until_they_answer(
    loop: Background, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers_module, "UNREACHABLE_SECONDS", 0.5)
    monkeypatch.setattr(peers_module, "RESOLVE_SECONDS", 0.2)
    one, two = (Neighbor(loop, name, tmp_path / name) for name in ("dp-1", "dp-2"))
    try:
        one.start(one.url, two.url)
        wait_until(lambda: one.plane.state.peers is not None, 5)
        cause = one.plane.state.peers
        assert cause is not None
        assert cause.text == f"1 of 1 other data planes can't be reached from this one: {two.url}."
        assert cause in one.plane.state.known_causes()
        assert one.plane.state.peer_statuses == {"unreachable": 1}
        two.start(one.url, two.url)
        wait_until(lambda: one.plane.state.peers is None, 5)
    finally:
        one.stop()
        two.stop()


def test_one_name_that_resolves_to_all_planes_is_followed(
    loop: Background, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers_module, "RESOLVE_SECONDS", 0.2)
    addresses = ["127.0.0.1", "127.0.0.2"]
    asked = []

    def resolver(host: str, port: int) -> list[str]:
        asked.append((host, port))
        if not addresses:
            raise OSError("no answer")
        return list(addresses)

    port = free_port()
    planes = [
        Neighbor(loop, f"dp-{n}", tmp_path / f"dp-{n}", address=f"127.0.0.{n}", port=port)
        for n in (1, 2, 3)
    ]
    one = planes[0]
    try:
        for each in planes:
            each.start(f"http://planes.example:{port}", resolver=resolver)
        wait_until(lambda: one.plane.peers.count_planes() == 3, 5)  # The third one asks, too.
        assert one.order().json()["accepted_by"] == ["dp-1", "dp-2"]
        assert set(asked) == {("planes.example", port)}
        addresses.append("127.0.0.3")
        wait_until(lambda: len(one.plane.peers.others()) == 2, 5)
        wait_until(lambda: all(peer.is_reachable for peer in one.plane.peers.others()), 5)
        assert one.order("feature:b").json()["accepted_by"] == ["dp-1", "dp-2", "dp-3"]
        addresses.clear()  # A resolver that fails changes nothing.
        time.sleep(0.5)
        assert one.order("feature:c").json()["accepted_by"] == ["dp-1", "dp-2", "dp-3"]
        addresses[:] = ["127.0.0.1", "127.0.0.2"]
        wait_until(lambda: len(one.plane.peers.others()) == 1, 5)
    finally:
        for each in planes:
            each.stop()


def test_a_resolver_that_hangs_is_not_asked_again_before_it_answers(
    loop: Background, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controlplane.dataplane.emergency.host_lookup.LOOKUP_SECONDS", 0.1)
    asked = []

    def resolver(host: str, _port: int) -> list[str]:
        asked.append(host)
        time.sleep(0.5)
        return ["127.0.0.1"]

    lookup = HostLookup("planes.example", 80, resolver)
    began = time.monotonic()
    loop.run(lookup.refresh())
    loop.run(lookup.refresh())
    assert time.monotonic() - began < 0.4
    assert (asked, lookup.addresses) == (["planes.example"], ())
