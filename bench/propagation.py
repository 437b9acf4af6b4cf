"""Measures propagation: the latency from an operator's commit to one client."""

import random
import time
from collections.abc import Iterable

from . import fixtures, latencies, load_processes, stalls
from .latencies import Latencies
from .servers import ServerUnderTest

BRISKLY = (0.01, 0.06)
ONE_BY_ONE = (0.2, 0.4)
"""Ranges of pauses between engagements, in seconds; after a long one no change waits."""
FIRST_SECONDS = 20


def measure(
    server: ServerUnderTest,
    token: str,
    keys: Iterable[str],
    kind: str,
    pause: tuple[float, float] = BRISKLY,
) -> Latencies:
    """Engage the features `keys` in turn; return the latencies until one client has the change.

    `kind` is a key of `listeners.KINDS`.
    """
    arguments = ("bench.listeners", kind, server.port, token, 1)
    with load_processes.running(*arguments) as client, stalls.watch_stalls() as stalled:
        client.line(FIRST_SECONDS, "the first version")
        committed = {}
        for version, moment in fixtures.engage(iter(keys)):
            committed[version] = moment
            time.sleep(random.uniform(*pause))
        time.sleep(2)
        received = [(line["version"], line["moments"][0]) for line in client.waiting()]
    found = [_first(received, version) - moment for version, moment in committed.items()]
    return latencies.summarize((each / 1e6 for each in found), stalled.worst_ms)


def _first(received: list[tuple[int, int]], version: int) -> int:
    """Return the time at which the client first had `version` or a newer one."""
    for newest, moment in received:
        if newest >= version:
            return moment
    raise SystemExit(f"bench: the client was never told version {version}")
