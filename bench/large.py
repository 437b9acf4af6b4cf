"""Ten thousand known switches, a thousand engaged: polls cost the same, changes come in time."""

import time
from dataclasses import dataclass
from http.client import HTTPConnection

from bench import ground, load, propagation, wire
from bench.delays import Delays
from bench.load import Figures, Target
from bench.servers import HOST, Server

SMALL = (100, 100)
LARGE = (10_000, 1_000)
SERVED_SECONDS = 10.0


@dataclass(frozen=True)
class Sizes:
    """304 with few and with many switches; commit → a held poll's whole 200 with many, for switches
    that were known before and for new ones."""

    small: Figures
    large: Figures
    known: Delays
    new: Delays


def measure(server: Server, token: str, rounds: int, seconds: int, changes: int) -> Sizes:
    """Rounds of both sizes alternate, on the same server."""
    small: list[Figures] = []
    large: list[Figures] = []
    for _ in range(rounds):
        for size, seen in ((SMALL, small), (LARGE, large)):
            known = wait_for(server, token, ground.lay(*size))
            headers = {"Authorization": f"Bearer {token}", "If-None-Match": known}
            target = Target("snapshot 304", server, wire.SNAPSHOT, headers, 304)
            load.hit(target, 1)
            seen.append(load.hit(target, seconds))
    way, pause = propagation.by_held_poll, propagation.ONE_BY_ONE
    keys = [ground.key(LARGE[1] + n) for n in range(changes)]
    known_delays = propagation.measure(server, token, keys, way, pause)
    keys = [f"new-{n}" for n in range(changes)]
    new_delays = propagation.measure(server, token, keys, way, pause)
    return Sizes(load.middle(small), load.middle(large), known_delays, new_delays)


def wait_for(server: Server, token: str, version: int) -> str:
    """The ETag of `version`, once it is served; ends the run if it never is."""
    deadline = time.monotonic() + SERVED_SECONDS
    while time.monotonic() < deadline:
        connection = HTTPConnection(HOST, server.port, timeout=10)
        connection.request("GET", wire.SNAPSHOT, headers={"Authorization": f"Bearer {token}"})
        response = connection.getresponse()
        response.read()
        connection.close()
        if response.headers["Switchgear-Version"] == str(version):
            return response.headers["ETag"]
        time.sleep(0.02)
    raise SystemExit(f"bench: version {version} is not served within {SERVED_SECONDS:.0f} s")
