"""Commit → poll: how long after an operator's commit a polling service is told."""

import random
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from statistics import quantiles

from bench import ground
from bench.servers import ROOT, Server

PAUSE_SECONDS = (0.01, 0.06)
SLEEP_SECONDS = 0.01


@dataclass(frozen=True)
class Delays:
    """In milliseconds, over `count` engagements."""

    count: int
    p50_ms: float
    p99_ms: float
    worst_ms: float
    stall_ms: float
    """The longest that this machine kept a sleeping thread waiting meanwhile."""


def measure(server: Server, token: str, count: int) -> Delays:
    """Engage `count` switches while one client polls without a pause on one connection."""
    limit = str(count * 0.2 + 20)
    poller = subprocess.Popen(
        [sys.executable, "-m", "bench.poller", str(server.port), token, limit],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        time.sleep(1)
        committed = {}
        stalls = _Stalls()
        for version, moment in ground.engage(f"told-{n}" for n in range(count)):
            committed[version] = moment
            time.sleep(random.uniform(*PAUSE_SECONDS))
        time.sleep(2)
        stall_seconds = stalls.end()
    finally:
        poller.terminate()
        lines = poller.communicate(timeout=10)[0].splitlines()
    told = sorted((int(version), int(moment)) for version, moment in map(str.split, lines))
    delays = [_first(told, version) - moment for version, moment in committed.items()]
    ranked = quantiles((delay / 1e6 for delay in delays), n=100, method="inclusive")
    return Delays(count, ranked[49], ranked[98], max(delays) / 1e6, stall_seconds * 1e3)


class _Stalls:
    """Watches how late short sleeps end: a machine with busy neighbours makes anything late."""

    def __init__(self) -> None:
        self._worst = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.is_set():
            began = time.monotonic()
            time.sleep(SLEEP_SECONDS)
            self._worst = max(self._worst, time.monotonic() - began - SLEEP_SECONDS)

    def end(self) -> float:
        self._ended.set()
        self._thread.join()
        return self._worst


def _first(told: list[tuple[int, int]], version: int) -> int:
    """When the poller first had `version` or a newer one."""
    for seen, moment in told:
        if seen >= version:
            return moment
    raise SystemExit(f"bench: the poller was never told version {version}")
