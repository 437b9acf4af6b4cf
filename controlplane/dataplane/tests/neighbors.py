"""Several data planes under the real server, connected by lines that tests can cut and freeze."""

import asyncio
import contextlib
import random
import socket
from collections import Counter
from collections.abc import Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
from granian.constants import Interfaces
from granian.server.embed import Server

from controlplane.core.egress_guard.name_resolution import Resolve
from controlplane.dataplane.application import Application
from controlplane.dataplane.config import Config, ServingConfig
from controlplane.dataplane.emergency.exchange import exchange_orders
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.storage.order_journal import order_key
from controlplane.dataplane.tests.lines import Background, Line, background, wait_until
from controlplane.dataplane.tests.served import credential, plane

KEY = order_key("a secret")
ORDERER = "sg_orderer01_a-fifth-secret"
MAY_ORDER = {"Authorization": f"Bearer {ORDERER}"}
ORDERS = "/api/v1/emergency/orders"
NO_REDIS = "redis://127.0.0.1:1/0"


class Neighbor:
    """A data plane, named `name`, that listens on a port of its own."""

    def __init__(
        self,
        loop: Background,
        name: str,
        folder: Path | None,
        *,
        keys: tuple[bytes, ...] = (KEY,),
        address: str = "127.0.0.1",
        port: int = 0,
        redis_url: str = NO_REDIS,
    ) -> None:
        self.loop = loop
        self.name = name
        self.folder = folder
        self.keys = keys
        self.redis_url = redis_url
        self.address = address
        self.port = port or free_port(address)
        self.url = f"http://{address}:{self.port}"
        self.plane: Plane = plane()
        self.tasks: list[asyncio.Task[None]] = []
        self._server: Server | None = None

    def start(self, *urls: str, resolver: Resolve | None = None) -> None:
        """Serve requests, and exchange orders with the data planes at `urls`."""
        made = self.plane
        tokens = {
            **(made.state.tokens or {}),
            b"orderer01": credential(ORDERER, "switches:emergency"),
        }
        made.state.install_tokens(1, tokens)
        if resolver is not None:
            made.peers.resolver = resolver
        config = Config(
            "postgresql://",
            None,
            self.redis_url,
            folder=self.folder,
            plane=self.name,
            data_planes=urls,
            order_keys=self.keys,
        )
        self.loop.run(self._start(config))
        wait_until(self._answers, 10)

    async def _start(self, config: Config) -> None:
        work = exchange_orders(config, self.plane.peers, self.plane.emergency_orders)
        await self.serve(config, work)

    async def serve(self, config: ServingConfig, work: Sequence[Coroutine[Any, Any, None]]) -> None:
        """Serve requests, and do `work` meanwhile."""
        orders = self.plane.emergency_orders
        orders.configure(config)
        await orders.load()
        self._server = Server(
            Application(self.plane),
            address=self.address,
            port=self.port,
            interface=Interfaces.ASGINL,
            log_enabled=False,
            websockets=False,
        )
        loop = asyncio.get_running_loop()
        self.tasks = [loop.create_task(each) for each in work]
        self.tasks.append(loop.create_task(self._server.serve()))

    def stop(self) -> None:
        if self._server is None:
            return
        self.loop.run(self._stop())

    async def _stop(self) -> None:
        assert self._server is not None
        self._server.stop()
        *exchanging, _ = self.tasks
        for task in exchanging:
            task.cancel()
        await asyncio.gather(*exchanging, return_exceptions=True)
        self._server = None

    def order(self, switch: str = "feature:chat", **fields: Any) -> httpx.Response:
        content = {"action": "engage", "switch": switch, "reason": "OpenAI 5xx on completions"}
        return self.post(ORDERS, {**content, **fields})

    def post(self, path: str, content: Any) -> httpx.Response:
        return httpx.post(
            self.url + path, json=content, headers=MAY_ORDER, timeout=20, verify=False
        )

    def serves(self, switch: str = "feature:chat") -> bool:
        copy = self.plane.state.copy
        return copy is not None and switch in copy.entries

    def holders(self) -> set[str]:
        """Return the planes that hold the only order, as this plane lists them."""
        response = httpx.get(self.url + ORDERS, headers=MAY_ORDER, timeout=5, verify=False)
        (found,) = response.json()["results"]
        return set(found["planes"])

    def statuses(self) -> Counter[str]:
        """Return the number of other data planes by status."""
        return Counter(peer.status for peer in self.plane.peers.others())

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health/live", timeout=2, verify=False).status_code == 200
        except httpx.TransportError:
            return False


class Neighborhood:
    """Data planes dp-1, dp-2, …; `lines[a, b]` is the connection from number a to number b."""

    def __init__(self, loop: Background, folder: Path, count: int) -> None:
        self.loop = loop
        numbers = range(1, count + 1)
        self.planes = {
            number: Neighbor(loop, f"dp-{number}", folder / f"dp-{number}") for number in numbers
        }
        self.lines = {
            (a, b): Line(loop, "127.0.0.1", self.planes[b].port)
            for a in numbers
            for b in numbers
            if a != b
        }

    def __getitem__(self, number: int) -> Neighbor:
        return self.planes[number]

    def urls_of(self, number: int) -> list[str]:
        """Return the URLs that a data plane knows: its own, and lines to the others."""
        return [
            each.url if other == number else f"http://127.0.0.1:{self.lines[number, other].port}"
            for other, each in self.planes.items()
        ]

    def start(self) -> None:
        for number, each in self.planes.items():
            each.start(*self.urls_of(number))
        wait_until(self._is_connected, 10)

    def split(self, *numbers: int) -> None:
        """Cut all lines between `numbers` and the others."""
        for (a, b), line in self.lines.items():
            if (a in numbers) is not (b in numbers):
                line.cut()

    def mend(self) -> None:
        for line in self.lines.values():
            line.mend()

    def _is_connected(self) -> bool:
        return all(
            len([peer for peer in each.plane.peers.others() if peer.is_reachable])
            == len(self.planes) - 1
            for each in self.planes.values()
        )


@contextlib.contextmanager
def neighborhood(folder: Path, count: int = 3, *, start: bool = True) -> Iterator[Neighborhood]:
    with background() as loop:
        made = Neighborhood(loop, folder, count)
        try:
            if start:
                made.start()
            yield made
        finally:
            for each in made.planes.values():
                each.stop()


def free_port(address: str = "127.0.0.1") -> int:
    """Return a port that no connection takes by chance: one below those of the system."""
    while True:
        port = random.randrange(10_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((address, port))
            return port
