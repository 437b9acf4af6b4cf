"""An upstream of relays: a real local HTTP server whose events a test chooses."""

import asyncio
import contextlib
import time
from collections.abc import Iterator
from typing import Any

import orjson

from controlplane.core.signatures import PublicKey, SigningKey
from controlplane.dataplane.config import RelayConfig
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.relay.bundle import SignedBundle, sign_bundle
from controlplane.dataplane.relay.collection import collect
from controlplane.dataplane.relay.difference import serialize_difference, serialize_full
from controlplane.dataplane.state import State
from controlplane.dataplane.tests.lines import Background, Line, wait_until
from controlplane.dataplane.tests.served import plane

TOKEN = "sg_relay00001_a-relays-secret"
KEY = SigningKey(bytes(range(32)))
OTHER_KEY = SigningKey(bytes(range(1, 33)))
HEAD = b"HTTP/1.1 %d Fake\r\nContent-Type: %b\r\nConnection: close\r\n\r\n"


class FakeUpstream:
    """Sends each relay its bundle and a confirmation, and then what the test sends."""

    def __init__(self, loop: Background, *switch_ids: str) -> None:
        self.loop = loop
        self.state: State = plane(*switch_ids).state
        self.keys: list[SigningKey] = [KEY]
        self.listed: list[SigningKey] = [KEY]
        """Keys in `GET /api/v1/keys` and in bundles."""
        self.status = 200
        self.greets = True
        self.age = 0.0
        self.fate: dict[str, object] | None = None
        """The answer about a lost version; None for 404."""
        self.asked: dict[str, str] = {}
        """The last request about a lost version."""
        self.requests: list[tuple[str, dict[str, str]]] = []
        """Path and headers of each GET."""
        self.last: SignedBundle | None = None
        self._streams: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.loop.run(self._start())

    def stop(self) -> None:
        """Close all streams, and refuse connections."""
        self.loop.run(self._stop())

    def make_bundle(self) -> SignedBundle:
        """Return the signed bundle of the present state."""
        before = None if self.last is None else self.last.bundle
        listed = [{"public_key": str(key.public)} for key in self.listed]
        self.state.public_keys = listed
        bundle = collect(self.state, before)
        assert bundle is not None
        self.last = sign_bundle(bundle, self.keys)
        return self.last

    def publish(self) -> None:
        """Send the difference between the last bundle and the present state."""
        before = self.last
        assert before is not None
        self.send("bundle", serialize_difference(before.parts, self.make_bundle()))

    def confirm(self, **fields: Any) -> None:
        self.send("confirm", self.make_confirmation(**fields))

    def make_confirmation(self, **fields: Any) -> bytes:
        usual = {
            "at": time.monotonic(),
            "age": self.age,
            "policies_age": self.age,
            "time": time.time(),
            "database": True,
            "read_only": False,
            "redis": True,
        }
        return orjson.dumps({**usual, **fields})

    def send(self, name: str, data: bytes) -> None:
        self.loop.run(self._send(name, data))

    def count_streams(self) -> int:
        return len(self._streams)

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in list(self._streams):
            writer.close()
        await asyncio.sleep(0)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            request = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            method, path, _ = request[0].split()
            headers = dict(line.lower().split(": ", 1) for line in request[1:] if line)
            if path == "/api/v1/relay/lost-version" and self.fate is not None:
                self.asked = orjson.loads(await reader.readexactly(int(headers["content-length"])))
                writer.write(HEAD % (200, b"application/json") + orjson.dumps(self.fate))
                writer.close()
                return
            if method == "POST":  # Reports and orders of the relay.
                writer.write(HEAD % (404, b"text/plain"))
                writer.close()
                return
            self.requests.append((path, headers))
            if self.status != 200:
                writer.write(HEAD % (self.status, b"text/plain"))
            elif path == "/api/v1/keys":
                keys = [{"public_key": str(key.public)} for key in self.listed]
                writer.write(HEAD % (200, b"application/json") + orjson.dumps({"keys": keys}))
            else:
                await self._stream(reader, writer)
        writer.close()

    async def _stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD % (200, b"text/event-stream"))
        self._streams.add(writer)
        try:
            if self.greets:
                await self._send("bundle", serialize_full(self.make_bundle()))
                await self._send("confirm", self.make_confirmation())
            await reader.read()
        finally:
            self._streams.discard(writer)

    async def _send(self, name: str, data: bytes) -> None:
        for writer in list(self._streams):
            writer.write(b"event: %b\ndata: %b\n\n" % (name.encode(), data))
            with contextlib.suppress(ConnectionError):  # A relay may just have left.
                await writer.drain()


class Relays:
    """Relays under test, on one loop with their upstreams."""

    def __init__(self, loop: Background) -> None:
        self.loop = loop
        self.upstreams: list[FakeUpstream] = []
        self.started: list[Plane] = []

    def upstream(self, *switch_ids: str) -> FakeUpstream:
        made = FakeUpstream(self.loop, *switch_ids)
        self.upstreams.append(made)
        return made

    def start(self, *urls: str, **options: Any) -> Plane:
        """Start a relay of these upstreams; wait until it is ready, or has failed."""
        keys: dict[str, PublicKey] = {KEY.public.id: KEY.public}
        usual = {"token": TOKEN, "public_keys": keys, "plane": "relay-1", "signing_key": b"own"}
        config = RelayConfig(upstreams=urls, **{**usual, **options})
        relay = Plane()
        self.started.append(relay)
        self.loop.run(relay.start(config))
        return relay

    def stop(self, relay: Plane) -> None:
        self.loop.run(relay.stop())

    def line(self, upstream: FakeUpstream) -> Line:
        return Line(self.loop, "127.0.0.1", upstream.port)


@contextlib.contextmanager
def relays(loop: Background) -> Iterator[Relays]:
    made = Relays(loop)
    try:
        yield made
    finally:
        for relay in made.started:
            made.stop(relay)
        for upstream in made.upstreams:
            upstream.stop()


def version_of(relay: Plane) -> int:
    copy = relay.state.copy
    return -1 if copy is None else copy.publication.version


def wait_for_version(relay: Plane, version: int, seconds: float = 5) -> None:
    wait_until(lambda: version_of(relay) == version, seconds)
