"""Runs the load generator wrk, on loopback, bounded in time and connections."""

import json
import resource
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from statistics import median

from .servers import HOST, ServerUnderTest

CONNECTIONS = 32
SCRIPT = Path(__file__).with_name("report.lua")


@dataclass(frozen=True)
class LoadTarget:
    """One request to measure: its printed name, server, path, headers and expected status."""

    name: str
    server: ServerUnderTest
    path: str
    headers: Mapping[str, str]
    status: int


@dataclass(frozen=True)
class LoadFigures:
    """The results of one round of load on one target."""

    requests_per_second: float
    p99_ms: float
    cpu_us: float
    """The server's CPU time per request, which other processes hardly affect."""
    load_share: float
    """Share of its core that wrk used; near 1, wrk itself limits the result."""


def require_wrk() -> None:
    """End the run with an error message unless wrk is installed."""
    if shutil.which("wrk") is None:
        print("bench: wrk is missing; install it (Debian, Ubuntu: apt-get install wrk)")
        sys.exit(2)


def run_round(target: LoadTarget, seconds: int) -> LoadFigures:
    """Put load on the target for `seconds`; end the run on an unexpected response."""
    used, spent = target.server.cpu_seconds(), _children_cpu()
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
    used, spent = target.server.cpu_seconds() - used, _children_cpu() - spent
    result = json.loads(done.stdout.splitlines()[-1])
    if result["wrong"] or not result["requests"]:
        raise SystemExit(
            f"bench: {target.name}: {result['wrong']} wrong answers of {result['requests']}"
        )
    return LoadFigures(
        requests_per_second=result["requests"] / result["duration_us"] * 1e6,
        p99_ms=result["p99_us"] / 1e3,
        cpu_us=used / result["requests"] * 1e6,
        load_share=spent / (result["duration_us"] / 1e6),
    )


def _children_cpu() -> float:
    """Return the CPU seconds of ended child processes, which are the load generators."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def median_figures(rounds: list[LoadFigures]) -> LoadFigures:
    """Return the median of each figure over rounds, so that one disturbed round does not count."""
    return LoadFigures(*map(median, zip(*map(astuple, rounds), strict=True)))
