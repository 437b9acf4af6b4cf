"""Commit → client: how long after an operator's commit one service is told."""

import random
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager

from bench import clients, delays, ground, stalls
from bench.clients import Clients
from bench.delays import Delays
from bench.servers import Server

BRISKLY = (0.01, 0.06)
ONE_BY_ONE = (0.2, 0.4)
"""Pauses between engagements, in seconds: with the long ones none waits for the one before."""
FIRST_SECONDS = 20


def by_poll(server: Server, token: str) -> AbstractContextManager[Clients]:
    """One client that polls without a pause on one connection."""
    return clients.running("bench.poller", server.port, token)


def by_held_poll(server: Server, token: str) -> AbstractContextManager[Clients]:
    """One client that polls with `?wait=`."""
    return clients.running("bench.crowd", "held", server.port, token, 1)


def by_stream(server: Server, token: str) -> AbstractContextManager[Clients]:
    """One client that listens to the stream."""
    return clients.running("bench.crowd", "streams", server.port, token, 1)


def measure(
    server: Server,
    token: str,
    keys: Iterable[str],
    way: Callable[[Server, str], AbstractContextManager[Clients]],
    pause: tuple[float, float] = BRISKLY,
) -> Delays:
    """Engage these features, one after the other, while one client listens."""
    with way(server, token) as client, stalls.watched() as stalled:
        client.line(FIRST_SECONDS, "the first version")
        committed = {}
        for version, moment in ground.engage(iter(keys)):
            committed[version] = moment
            time.sleep(random.uniform(*pause))
        time.sleep(2)
        told = list(_told(client))
    found = [_first(told, version) - moment for version, moment in committed.items()]
    return delays.summed_up((each / 1e6 for each in found), stalled.worst_ms)


def _told(client: Clients) -> Iterator[tuple[int, int]]:
    for line in client.waiting():
        yield line["version"], line["moments"][0]


def _first(told: list[tuple[int, int]], version: int) -> int:
    """When the client first had `version` or a newer one."""
    for seen, moment in told:
        if seen >= version:
            return moment
    raise SystemExit(f"bench: the client was never told version {version}")
