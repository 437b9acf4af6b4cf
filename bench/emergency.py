"""Measures emergency orders while PostgreSQL and Redis are down: two planes, one stream of each."""

import json
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from . import http_client, latencies, load_processes, stalls
from .http_client import SNAPSHOT, fetch
from .latencies import Latencies
from .servers import PLANE, ServerUnderTest, free_port, running

ORDERS = "/api/v1/emergency/orders"
SCOPES = ("switches:read", "switches:emergency")
ONE_BY_ONE = 200
SENDERS = 32
REACH_SECONDS = 60
AWAY = {
    "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
    "REDIS_URL": "redis://127.0.0.1:1/0",
}
"""Nothing listens there."""


@dataclass(frozen=True)
class OrderCosts:
    """Latencies from the sending of an order until a stream client has it, and costs of many.

    `own` is for a client of the accepting plane, `peer` for one of the other plane. `accepted` are
    the latencies of the answers to `crowd` orders at once, which were all served by both planes
    after `crowd_seconds`. A restarted plane served `total` orders after `restart_seconds`.
    """

    own: Latencies
    peer: Latencies
    crowd: int
    accepted: Latencies
    crowd_seconds: float
    total: int
    restart_seconds: float


def measure(core: int, loop: str, token: str, folder: Path, total: int) -> OrderCosts:
    """Give `total` orders, `ONE_BY_ONE` of them singly and the others at once; restart a plane."""
    with running(PLANE, core=core, loop=loop) as plane:
        _await(lambda: (folder / "data" / "snapshot" / "current").exists(), "a saved snapshot")
        fetch(plane.port, SNAPSHOT, http_client.bearer(token))
    ports = [free_port(), free_port()]
    planes = " ".join(f"http://127.0.0.1:{port}" for port in ports)
    numbers = count(1)

    def start(stack: ExitStack, index: int) -> ServerUnderTest:
        data = folder / f"plane-{index}"
        if not data.exists():
            shutil.copytree(folder / "data", data)
        variables = {
            **AWAY,
            "DATA_PLANES": planes,
            "PLANE_NAME": f"dp-{index}",
            "SWITCHGEAR_DATA_DIR": str(data),
        }
        server = running(PLANE, core=core, loop=loop, port=ports[index], variables=variables)
        return stack.enter_context(server)

    def give(number: int) -> float:
        """Give an order for a switch of its own; return the seconds until it was accepted."""
        order = {
            "action": "engage",
            "switch": f"segment:ordered-{number}",
            "reason": "Benchmark: the payment provider answers with wrong totals",
        }
        began = time.perf_counter()
        headers = http_client.bearer(token)
        fetch(ports[0], ORDERS, headers, method="POST", body=json.dumps(order), expected=201)
        return time.perf_counter() - began

    with ExitStack() as stack:
        accepting = stack.enter_context(ExitStack())
        start(accepting, 0)
        start(stack, 1)
        own, peer = _give_one_by_one(ports, token, lambda: give(next(numbers)))
        crowd = total - ONE_BY_ONE
        began = time.perf_counter()
        with stalls.watch_stalls() as stalled, ThreadPoolExecutor(SENDERS) as senders:
            answered = list(senders.map(give, [next(numbers) for _ in range(crowd)]))
        for port in ports:
            _await(lambda port=port: _count_orders(port, token) == total, f"{total} orders")
        crowd_seconds = time.perf_counter() - began
        accepting.close()
        began = time.perf_counter()
        start(stack, 0)
        _await(lambda: _count_orders(ports[0], token) == total, f"{total} orders after a restart")
        restart_seconds = time.perf_counter() - began
    accepted = latencies.summarize((each * 1e3 for each in answered), stalled.worst_ms)
    return OrderCosts(own, peer, crowd, accepted, crowd_seconds, total, restart_seconds)


def _give_one_by_one(
    ports: list[int], token: str, give: Callable[[], object]
) -> tuple[Latencies, Latencies]:
    """Give orders with pauses; return the latencies to a stream client of each plane."""
    sent = {}
    with ExitStack() as stack:
        clients = [
            stack.enter_context(load_processes.running("bench.listeners", "orders", port, token, 1))
            for port in ports
        ]
        for client in clients:
            client.line(REACH_SECONDS, "the first event")
        stalled = stack.enter_context(stalls.watch_stalls())
        for number in range(1, ONE_BY_ONE + 1):
            sent[number] = time.monotonic_ns()
            give()
            time.sleep(0.05)
        time.sleep(2)
        received = [
            [(line["version"], line["moments"][0]) for line in client.waiting()]
            for client in clients
        ]

    def summarize(events: list[tuple[int, int]]) -> Latencies:
        found = []
        for number, moment in sent.items():
            reached = [at for orders, at in events if orders >= number]
            if not reached:
                raise SystemExit(f"bench: the client was never told order {number}")
            found.append((reached[0] - moment) / 1e6)
        return latencies.summarize(found, stalled.worst_ms)

    return summarize(received[0]), summarize(received[1])


def _count_orders(port: int, token: str) -> int:
    document = json.loads(fetch(port, SNAPSHOT, http_client.bearer(token)).body)
    return len(document.get("emergency", {"open": ()})["open"])


def _await(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + REACH_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"bench: {what}: not within {REACH_SECONDS} s")
        time.sleep(0.05)
