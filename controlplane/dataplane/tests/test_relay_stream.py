"""`/relay/stream`: bundles built once for all relays, orders, confirmations, and refusals."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson
import pytest

from controlplane.core.degradation_levels import REDIS
from controlplane.core.protocol import RELAY_BATCH, RELAY_LOST_VERSION, RELAY_ORDERS
from controlplane.core.signatures import SigningKey
from controlplane.dataplane.application import Application
from controlplane.dataplane.memory.credentials import Credential
from controlplane.dataplane.memory.policies import DependencyPolicy, Policies
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.relay import stream as relay_stream
from controlplane.dataplane.relay.difference import ReceivedBundle, apply_event
from controlplane.dataplane.relay.source import BundleHistory, ReceivedSource
from controlplane.dataplane.relay.stream import RelayStreams, read_hashes
from controlplane.dataplane.tests.exchange import Exchange
from controlplane.dataplane.tests.served import BEARER, EPOCH, ask, copy, credential, plane
from controlplane.dataplane.tests.test_signed_copies import CountingKey
from switches.emergency.orders import ENGAGE, Order, Orderer

PATH = "/api/v1/relay/stream"
RELAY = "sg_relay00001_a-relay's-secret"
HEADERS = {"Authorization": f"Bearer {RELAY}", "Switchgear-Relay": "seoul-1"}
KEY, NEW_KEY = SigningKey(bytes(range(32))), SigningKey(bytes(32))
KEYS = {KEY.public.id: KEY.public}
SOON = 0.15
ORDER = Order(
    id=UUID(int=1),
    action=ENGAGE,
    switch="feature:chat",
    reason="OpenAI 5xx on completions",
    expires_in="24h",
    by=Orderer("user", "kim", 7),
    at=datetime(2026, 11, 28, 2, 10, tzinfo=UTC),
    plane="dp-1",
)


def upstream(*switch_ids: str, **changes: Any) -> Plane:
    """Return a plane that signs, and has a token for relays with these `changes`."""
    made = plane(*switch_ids)
    state = made.state
    state.install_keys([KEY], ())
    assert state.tokens is not None
    tokens = {**state.tokens, b"relay00001": replace(credential(RELAY, "relay"), **changes)}
    state.install_tokens(2, tokens)
    return made


class Relay:
    """A relay's end of a stream: it collects the events, and applies the bundles."""

    def __init__(self, exchange: Exchange, before: ReceivedBundle | None = None) -> None:
        self.exchange = exchange
        self.bundle = before
        self.names: list[str] = []
        self.texts: list[bytes] = []
        self._buffer = b""

    async def next(self, within: float = 5) -> tuple[str, Any]:
        """Return the next event and its data; raise TimeoutError if none comes."""
        while b"\n\n" not in self._buffer:
            self._buffer += await self.exchange.part(within)
        event, _, self._buffer = self._buffer.partition(b"\n\n")
        fields = dict(line.split(b": ", 1) for line in event.split(b"\n"))
        if b"event" not in fields:
            return await self.next(within)
        name, data = fields[b"event"].decode(), fields[b"data"]
        self.texts.append(event)
        self.names.append(name)
        if name == "bundle":
            self.bundle = apply_event(self.bundle, data, KEYS)
        return name, orjson.loads(data)

    async def begin(self) -> list[Any]:
        """Return the data of the three events with which a stream begins."""
        assert await self.exchange.receive_status() == 200
        begun = [await self.next() for _ in range(3)]
        assert [name for name, _ in begun] == ["bundle", "orders", "confirm"]
        return [data for _, data in begun]


def follow(served: Plane, headers: Mapping[str, str] = HEADERS) -> Exchange:
    return Exchange(Application(served), PATH, headers)


def name_parts(bundle: ReceivedBundle) -> dict[str, str]:
    hashes = ", ".join(f"{name}={found}" for name, found in bundle.signed.hashes.items())
    return {**HEADERS, "Switchgear-Bundle": hashes}


def test_stream_begins_with_all_that_the_plane_holds() -> None:
    async def run() -> None:
        served = upstream("segment:finance")
        served.state.add_orders([ORDER])
        async with follow(served) as exchange:
            relay = Relay(exchange)
            _, orders, confirmation = await relay.begin()

            state, published = served.state, served.state.published
            assert exchange.headers["content-type"].startswith("text/event-stream")
            assert relay.bundle is not None
            assert published is not None
            assert relay.bundle.contents.snapshot.body == published.body
            assert relay.bundle.head.snapshot_signature == published.signature != ""
            assert relay.bundle.contents.tokens == state.tokens
            assert orders == {"orders": [orjson.loads(ORDER.serialized)]}
            assert 0 <= confirmation["age"] < 5
            assert confirmation["at"] <= state.now()
            assert confirmation["time"] is None
            assert (confirmation["database"], confirmation["redis"]) == (False, True)

    asyncio.run(run())


def test_each_change_comes_as_a_difference() -> None:
    async def run() -> None:
        served = upstream("segment:finance", "segment:other")
        state = served.state
        async with follow(served) as exchange:
            relay = Relay(exchange)
            await relay.begin()

            state.install_copy(copy(18, "segment:finance", "segment:new"), state.now())
            name, data = await relay.next()
            assert (name, data["parts"].keys()) == ("bundle", {"snapshot"})
            assert data["parts"]["snapshot"]["set"].keys() == {"", "segment:new"}
            assert data["parts"]["snapshot"]["delete"] == ["segment:other"]

            changes: tuple[tuple[Callable[[], None], str], ...] = (
                (lambda: state.install_known(5, frozenset({"segment:finance"})), "known"),
                (lambda: state.install_causes(5, (REDIS,)), "causes"),
                (
                    lambda: state.install_policies(
                        Policies.build(EPOCH, 3, [DependencyPolicy("core", "db", 3, b"{}")])
                    ),
                    "policies",
                ),
            )
            for change, part in changes:
                change()
                name, data = await relay.next()
                assert (name, data["parts"].keys()) == ("bundle", {part})
            assert relay.bundle is not None
            assert relay.bundle.contents.known == {"segment:finance"}
            assert relay.bundle.contents.causes == (REDIS,)

    asyncio.run(run())


def test_new_order_comes_at_once() -> None:
    async def run() -> None:
        served = upstream()
        async with follow(served) as exchange:
            relay = Relay(exchange)
            assert (await relay.begin())[1] == {"orders": []}

            served.state.add_orders([ORDER])

            name, data = await relay.next()
            assert (name, data) == ("orders", {"orders": [orjson.loads(ORDER.serialized)]})

    asyncio.run(run())


def test_new_signature_of_the_same_snapshot_is_sent() -> None:
    async def run() -> None:
        served = upstream("segment:finance")
        async with follow(served) as exchange:
            relay = Relay(exchange)
            await relay.begin()

            served.state.install_keys([NEW_KEY, KEY], ())

            name, data = await relay.next()
            assert (name, data["parts"]) == ("bundle", {})
            assert relay.bundle is not None
            assert NEW_KEY.public.id in relay.bundle.head.snapshot_signature

    asyncio.run(run())


def test_relay_that_returns_gets_only_what_it_lacks() -> None:
    async def run() -> None:
        served = upstream("segment:finance")
        async with follow(served) as exchange:
            relay = Relay(exchange)
            await relay.begin()
        assert relay.bundle is not None
        headers = name_parts(relay.bundle)
        async with follow(served, headers) as exchange:
            relay = Relay(exchange, relay.bundle)
            assert (await relay.begin())[0]["parts"] == {}
        served.state.install_copy(copy(18, "segment:new"), served.state.now())
        async with follow(served, headers) as exchange:
            relay = Relay(exchange, relay.bundle)
            assert (await relay.begin())[0]["parts"]["snapshot"]["set"].keys() == {
                "",
                "segment:new",
            }

    asyncio.run(run())


def test_relay_with_parts_that_nobody_knows_gets_whole_parts() -> None:
    async def run() -> None:
        served = upstream("segment:finance")
        headers = {
            **HEADERS,
            "Switchgear-Bundle": f"snapshot={'0' * 64}, tokens=x, later={'1' * 64}",
        }
        async with follow(served, headers) as exchange:
            relay = Relay(exchange)
            first = (await relay.begin())[0]
            assert {change["base"] for change in first["parts"].values()} == {None}

    asyncio.run(run())


def test_bundle_and_events_are_made_once_for_all_relays() -> None:
    async def run() -> None:
        served = upstream("segment:finance")
        served.state.install_keys([CountingKey(KEY.raw)], ())
        CountingKey.signed = 0
        relays = []
        for _ in range(20):
            relays.append(Relay(await follow(served).__aenter__()))
            await relays[-1].begin()
        served.state.install_copy(copy(18, "segment:new"), served.state.now())
        for relay in relays:
            assert (await relay.next())[0] == "bundle"
        for relay in relays:
            await relay.exchange.__aexit__(None, None, None)

        assert CountingKey.signed == 3  # A bundle; then a snapshot and its bundle.
        assert len({relay.texts[0] for relay in relays}) == 1
        assert len({relay.texts[-1] for relay in relays}) == 1

    asyncio.run(run())


def test_confirmations_are_the_same_bytes_for_all_but_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relay_stream, "CONFIRM_SECONDS", 0.05)

    async def run() -> None:
        served = upstream()
        async with follow(served) as one, follow(served) as other:
            relays = [Relay(one), Relay(other)]
            firsts = [(await relay.begin())[2] for relay in relays]
            asked_at = served.state.now()
            async with follow(served) as late:
                assert (await Relay(late).begin())[2]["at"] >= asked_at
            for relay in relays:
                for _ in range(10):
                    await relay.next()
            shared = [set(relay.texts[3:]) for relay in relays]
            assert len(shared[0] & shared[1]) >= 8
            assert all(set(relay.names[3:]) == {"confirm"} for relay in relays)
            ats = [orjson.loads(text.partition(b"data: ")[2])["at"] for text in relays[0].texts[2:]]
            assert ats == sorted(ats)
            assert ats[0] == firsts[0]["at"]
        await asyncio.sleep(0.1)
        last = served.relay_streams.confirmation
        await asyncio.sleep(0.1)
        assert served.relay_streams.confirmation is last, "nobody follows, but it goes on"
        assert served.state.relay_streams == 0

    asyncio.run(run())


@pytest.mark.parametrize(
    "tokens",
    [{}, {b"relay00001": credential(RELAY, "switches:read")}],
    ids=["revoked", "owner no longer an admin"],
)
def test_token_that_loses_the_scope_ends_the_stream_within_a_second(
    tokens: dict[bytes, Credential],
) -> None:
    async def run() -> None:
        served = upstream()
        async with follow(served) as exchange:
            await Relay(exchange).begin()

            served.state.install_tokens(3, tokens)

            assert await exchange.part(1) == b""
            await asyncio.wait_for(exchange.task, 1)

    asyncio.run(run())


def test_relay_that_does_not_read_gets_the_latest_bundle_when_it_does() -> None:
    async def run() -> None:
        served = upstream()
        async with Exchange(Application(served), PATH, HEADERS, slow=True) as exchange:
            for version in range(18, 60):
                await asyncio.sleep(0)
                served.state.install_copy(copy(version), served.state.now())
            exchange.reads.set()
            relay = Relay(exchange)
            await relay.begin()
            assert relay.bundle is not None
            assert relay.bundle.head.publication.version == 59

    asyncio.run(run())


def test_relay_serves_what_it_received_as_it_came() -> None:
    async def run() -> None:
        first = upstream("segment:finance")
        async with follow(first) as exchange:
            received = Relay(exchange)
            await received.begin()
            assert received.bundle is not None
            second = upstream()
            source = ReceivedSource(second.state)
            second.relay_streams.source = source
            source.install(received.bundle.signed)
            async with follow(second) as behind:
                relay = Relay(behind)
                await relay.begin()
                assert relay.bundle is not None
                assert relay.bundle.signed == received.bundle.signed

                first.state.install_copy(copy(18, "segment:new"), first.state.now())
                await received.next()
                source.install(received.bundle.signed)

                name, data = await relay.next()
                assert (name, data["parts"].keys()) == ("bundle", {"snapshot"})
                assert relay.bundle.signed == received.bundle.signed

    asyncio.run(run())


def test_only_a_token_with_the_scope_may_follow() -> None:
    assert ask(upstream(), "GET", PATH).status_code == 401
    assert ask(upstream(), "GET", PATH, BEARER).status_code == 403


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", PATH),
        ("POST", RELAY_BATCH),
        ("POST", RELAY_LOST_VERSION),
        ("POST", RELAY_ORDERS),
    ],
)
def test_token_that_is_limited_to_services_is_refused(method: str, path: str) -> None:
    limited = ask(upstream(services=frozenset({"core"})), method, path, HEADERS)
    assert limited.status_code == 403
    assert "can't be limited to services" in limited.json()["detail"]


def test_plane_without_a_signing_key_answers_503() -> None:
    served = upstream()
    served.state.install_keys([], ())

    answer = ask(served, "GET", PATH, HEADERS)

    assert answer.status_code == 503
    assert "no signing key" in answer.json()["detail"]
    assert answer.headers["retry-after"] == "5"


def test_relay_without_a_bundle_answers_503() -> None:
    served = upstream()
    served.relay_streams = RelayStreams(served.state, ReceivedSource(served.state))

    answer = ask(served, "GET", PATH, HEADERS)

    assert answer.status_code == 503
    assert "no bundle yet" in answer.json()["detail"]


def test_history_knows_the_latest_bundles_only() -> None:
    served = upstream()
    history, source = BundleHistory(), served.relay_streams.source
    sent = []
    for version in range(18, 38):
        served.state.install_copy(copy(version, f"segment:{version}"), 0.0)
        bundle = source.current()
        assert bundle is not None
        sent.append(bundle)
        history.render_event(bundle, {})

    def is_difference(number: int) -> bool:
        event = b"".join(history.render_event(sent[-1], sent[number].hashes))
        return b'"base":null' not in event

    assert [is_difference(number) for number in range(20)] == [False] * 4 + [True] * 16


@pytest.mark.parametrize(
    ("header", "hashes"),
    [
        (b"", {}),
        (b"snapshot=" + b"a" * 64, {"snapshot": "a" * 64}),
        (
            b"snapshot=" + b"a" * 64 + b", known=" + b"0" * 64,
            {"snapshot": "a" * 64, "known": "0" * 64},
        ),
        (b"snapshot=abc, =" + b"0" * 64, {}),
    ],
)
def test_header_names_the_hash_of_each_part(header: bytes, hashes: dict[str, str]) -> None:
    assert read_hashes(header) == hashes
