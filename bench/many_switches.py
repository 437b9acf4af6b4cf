"""Measures polls and changes with ten thousand switches, a thousand of them engaged."""

import time
from dataclasses import dataclass

from . import fixtures, http_client, propagation, wrk
from .latencies import Latencies
from .servers import ServerUnderTest
from .wrk import LoadFigures, LoadTarget

SMALL = (100, 100)
LARGE = (10_000, 1_000)
SERVED_SECONDS = 10.0


@dataclass(frozen=True)
class SizeCosts:
    """The effect of the number of switches on polling.

    `small` and `large` are load figures of polls answered with 304, with few and with many
    switches. `known` and `new` are latencies, with many switches, from the commit of an engagement
    to the response of a held poll, for existing switches and for switches that it creates.
    """

    small: LoadFigures
    large: LoadFigures
    known: Latencies
    new: Latencies


def measure(
    server: ServerUnderTest, token: str, rounds: int, seconds: int, changes: int
) -> SizeCosts:
    """Return the costs of polls and changes; rounds with few and with many switches alternate."""
    small: list[LoadFigures] = []
    large: list[LoadFigures] = []
    for _ in range(rounds):
        for size, figures in ((SMALL, small), (LARGE, large)):
            known = wait_for_version(server, token, fixtures.create_switches(*size))
            headers = {**http_client.bearer(token), "If-None-Match": known}
            target = LoadTarget("snapshot 304", server, http_client.SNAPSHOT, headers, 304)
            wrk.run_round(target, 1)
            figures.append(wrk.run_round(target, seconds))
    way, pause = "held", propagation.ONE_BY_ONE
    keys = [fixtures.switch_key(LARGE[1] + n) for n in range(changes)]
    known_delays = propagation.measure(server, token, keys, way, pause)
    keys = [f"new-{n}" for n in range(changes)]
    new_delays = propagation.measure(server, token, keys, way, pause)
    return SizeCosts(wrk.median_figures(small), wrk.median_figures(large), known_delays, new_delays)


def wait_for_version(server: ServerUnderTest, token: str, version: int) -> str:
    """Return the ETag of the snapshot `version` once it is served; end the run if it never is."""
    deadline = time.monotonic() + SERVED_SECONDS
    while time.monotonic() < deadline:
        bearer = http_client.bearer(token)
        response = http_client.fetch(server.port, http_client.SNAPSHOT, bearer, expected=None)
        if response.headers["Switchgear-Version"] == str(version):
            return response.headers["ETag"]
        time.sleep(0.02)
    raise SystemExit(f"bench: version {version} is not served within {SERVED_SECONDS:.0f} s")
