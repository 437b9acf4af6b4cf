"""Load from wrk, on loopback, bounded in time and connections."""

import json
import resource
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.servers import HOST, Server

CONNECTIONS = 32
SCRIPT = Path(__file__).with_name("report.lua")


@dataclass(frozen=True)
class Target:
    """One row of the table: what is asked, of whom, and the status it must answer with."""

    name: str
    server: Server
    path: str
    headers: Mapping[str, str]
    status: int


@dataclass(frozen=True)
class Figures:
    """What one round of load saw."""

    requests_per_second: float
    p99_ms: float
    cpu_us: float
    """CPU time of the server for one request: a figure that busy neighbours hardly touch."""
    load_share: float
    """How busy wrk kept its own core; near 1 it would be wrk that is measured."""


def require_wrk() -> None:
    """End the run with one line unless wrk is there."""
    if shutil.which("wrk") is None:
        print("bench: wrk is missing; install it (Debian, Ubuntu: apt-get install wrk)")
        sys.exit(2)


def hit(target: Target, seconds: int) -> Figures:
    """One round; ends the run if anything but the expected answer came back."""
    used, spent = target.server.cpu_seconds(), _spent()
    done = subprocess.run(
        [
            *("wrk", "--threads", "1", "--connections", str(CONNECTIONS)),
            *("--duration", f"{seconds}s", "--script", str(SCRIPT)),
            *(f"--header={name}: {value}" for name, value in target.headers.items()),
            f"http://{HOST}:{target.server.port}{target.path}",
        ],
        capture_output=True,
        text=True,
        timeout=seconds + 20,
        check=True,
    )
    used, spent = target.server.cpu_seconds() - used, _spent() - spent
    seen = json.loads(done.stdout.splitlines()[-1])
    if seen["wrong"] or not seen["requests"]:
        raise SystemExit(
            f"bench: {target.name}: {seen['wrong']} wrong answers of {seen['requests']}"
        )
    return Figures(
        requests_per_second=seen["requests"] / seen["duration_us"] * 1e6,
        p99_ms=seen["p99_us"] / 1e3,
        cpu_us=used / seen["requests"] * 1e6,
        load_share=spent / (seen["duration_us"] / 1e6),
    )


def _spent() -> float:
    """CPU seconds of the load processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def middle(rounds: list[Figures]) -> Figures:
    """The medians: one disturbed round does not count."""
    return Figures(
        requests_per_second=median(each.requests_per_second for each in rounds),
        p99_ms=median(each.p99_ms for each in rounds),
        cpu_us=median(each.cpu_us for each in rounds),
        load_share=median(each.load_share for each in rounds),
    )
