"""Relays in tests of emergency orders: real servers whose upstream is a line that can be cut."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from controlplane.dataplane.config import RelayConfig, derive_signing_key
from controlplane.dataplane.relay.orders import RelayOrders
from controlplane.dataplane.storage.order_journal import order_key
from controlplane.dataplane.tests.lines import Background, Line, background, wait_until
from controlplane.dataplane.tests.neighbors import ORDERER, Neighbor
from controlplane.dataplane.tests.served import credential
from switches.emergency.orders import order_document

RELAY = "sg_relay00001_a-sixth-secret"
RELAY_BEARER = {"Authorization": f"Bearer {RELAY}"}


class RelayNeighbor(Neighbor):
    """A relay of `upstream`, which has its own token for it; `line` leads there."""

    def __init__(
        self, loop: Background, name: str, folder: Path | None, upstream: Neighbor
    ) -> None:
        super().__init__(loop, name, folder)
        self.upstream = upstream
        self.line = Line(loop, "127.0.0.1", upstream.port)
        self.secret = f"the secret of {name}"
        self.token = RELAY
        self.relay_orders: RelayOrders | None = None

    def start_relay(self, *relays: str) -> None:
        """Serve requests; `relays` are the URLs of those that exchange orders with this one."""
        permit(self)
        self.loop.run(self._start_relay(relays))
        wait_until(self._answers, 10)

    async def _start_relay(self, relays: tuple[str, ...]) -> None:
        made = self.plane
        config = RelayConfig(
            upstreams=(f"http://127.0.0.1:{self.line.port}",),
            token=self.token,
            public_keys={},
            folder=self.folder,
            plane=self.name,
            order_keys=(order_key(self.secret),),
            order_signing_key=derive_signing_key(self.secret),
            relays=relays,
        )
        relay_orders = RelayOrders(
            config, made.state, made.emergency_orders, made.order_exchange, made.peers
        )
        self.relay_orders = relay_orders
        await self.serve(config, relay_orders.tasks())

    def hear_upstream(self) -> None:
        """Receive the event `orders` of the upstream's stream."""
        documents = map(order_document, self.upstream.plane.state.orders.unclosed.values())
        assert self.relay_orders is not None
        self.loop.run(self.relay_orders.receive_event(orjson.dumps({"orders": [*documents]})))


def permit(plane: Neighbor) -> None:
    """Let relays and orderers use a data plane or relay."""
    tokens = {
        **(plane.plane.state.tokens or {}),
        b"orderer01": credential(ORDERER, "switches:emergency"),
        b"relay00001": credential(RELAY, "relay"),
    }
    plane.plane.state.install_tokens(1, tokens)


class Region:
    """The data plane dp-1, its relays eu-1 and us-1, and the relay eu-2 behind eu-1."""

    def __init__(self, loop: Background, folder: Path) -> None:
        self.plane = Neighbor(loop, "dp-1", folder / "dp-1")
        self.eu = RelayNeighbor(loop, "eu-1", folder / "eu-1", self.plane)
        self.us = RelayNeighbor(loop, "us-1", folder / "us-1", self.plane)
        self.behind = RelayNeighbor(loop, "eu-2", folder / "eu-2", self.eu)
        self.relays = (self.eu, self.us, self.behind)

    def start(self) -> None:
        self.plane.start()
        permit(self.plane)
        for relay in self.relays:
            relay.start_relay()

    def stop(self) -> None:
        for each in (*self.relays, self.plane):
            each.stop()


@contextlib.contextmanager
def region(folder: Path) -> Iterator[Region]:
    with background() as loop:
        made = Region(loop, folder)
        try:
            made.start()
            yield made
        finally:
            made.stop()


def withdraw(plane: Neighbor, order_id: str) -> Any:
    content = {"action": "withdraw", "order": order_id, "reason": "false alarm, all fine"}
    return plane.post("/api/v1/emergency/orders", content)
