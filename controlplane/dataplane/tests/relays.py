"""Relays without a network: their ledger, spool and forwarder, and upstreams in memory."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import httpx

from controlplane.core.protocol import RELAY_BATCH
from controlplane.dataplane.config import RelayConfig
from controlplane.dataplane.ingest.relay_message import RelayMessage
from controlplane.dataplane.ingest.report_merge import parse_report
from controlplane.dataplane.relay.batch import parse_message
from controlplane.dataplane.relay.forwarder import Forwarder, ForwardingTiming
from controlplane.dataplane.relay.relay_ledger import RelayLedger
from controlplane.dataplane.relay.spool import MAX_BYTES
from controlplane.dataplane.relay.upstream import UpstreamFailed
from controlplane.dataplane.state import State
from controlplane.dataplane.tests.ledgers import COPY, Clock

TOKEN = "sg_relaytoken_" + "r" * 32
Receive = Callable[[RelayMessage], Awaitable[int]]


class Upstream:
    """An upstream that passes messages on, until it is told to fail.

    `fails` is a status; `loses_answer` means that the message is stored, and the answer lost.
    """

    def __init__(self, receive: Receive) -> None:
        self.receive = receive
        self.fails = 0
        self.loses_answer = False
        self.bodies: list[bytes] = []

    async def handle(self, request: httpx.Request) -> httpx.Response:
        assert request.url.path == RELAY_BATCH
        assert request.headers["authorization"] == f"Bearer {TOKEN}"
        self.bodies.append(request.content)
        if self.fails:
            return httpx.Response(self.fails, headers={"retry-after": "7"})
        await self.receive(parse_message(request.content))
        if self.loses_answer:
            raise httpx.ReadError("the answer is lost")
        return httpx.Response(200, json={"accepted": True})


class Relay:
    """A relay process named `name`, whose requests go to `upstreams` by host name."""

    def __init__(
        self,
        name: str,
        data_dir: Path,
        upstreams: Mapping[str, Upstream],
        *,
        max_bytes: int = MAX_BYTES,
        timing: ForwardingTiming | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.clock = clock or Clock()
        self.upstreams = upstreams
        urls = tuple(f"http://{host}" for host in upstreams)
        self.config = RelayConfig(
            folder=data_dir / "snapshot", plane=name, upstreams=urls, token=TOKEN, public_keys={}
        )
        self.state = State()
        self.state.wall = self.clock.wall
        self.ledger = RelayLedger(self.clock.wall, max_bytes)
        self.state.ledger = self.ledger
        self.state.install_copy(COPY, confirmed_at=self.state.now())
        self.forwarder = Forwarder(
            self.config, self.state, self.ledger, timing or ForwardingTiming()
        )
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        self._tasks = [asyncio.create_task(self.ledger.run(self.config))]
        while self.ledger.spool is None:
            await asyncio.sleep(0.001)

    async def stop(self) -> None:
        """End the process without sending anything more, as a kill does."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.ledger.spool.close()

    async def report(self, document: Mapping[str, Any], token_id: int = 7) -> bool:
        return await self.ledger.report(parse_report(document), COPY, token_id)

    async def send(self) -> bool:
        """Send once what is due; return True if the upstream accepted it."""
        async with httpx.AsyncClient(transport=httpx.MockTransport(self._route)) as client:
            try:
                await self.forwarder.send_due(client)
            except UpstreamFailed as error:
                self.forwarder.record_failure(error)
                return False
        return True

    async def send_stop(self) -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(self._route)) as client:
            await self.forwarder.send_stop(client)

    async def _route(self, request: httpx.Request) -> httpx.Response:
        return await self.upstreams[request.url.host].handle(request)


def make_relay_state() -> State:
    state = State()
    state.ledger = RelayLedger(state.wall)
    return state
