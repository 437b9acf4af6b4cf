"""Measures CPU and memory of each process of an idle installation, over a minute."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .servers import ROOT, free_port, is_ready, threads_cpu_seconds

START_SECONDS = 180.0
SETTLE_SECONDS = 30.0
MEASURED_SECONDS = 60.0
EXCLUDED_VARIABLES = ("DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE")


@dataclass(frozen=True)
class ProcessCost:
    """A process's CPU time, in percent of a core, and its memory in MiB.

    `pss_mib` divides each shared page equally among the processes that map it.
    """

    name: str
    cpu_percent: float
    pss_mib: float
    rss_mib: float


def measure() -> Sequence[ProcessCost]:
    """Start an installation with its own PostgreSQL and Redis, and measure it once it is idle."""
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        environment = {
            name: value for name, value in os.environ.items() if name not in EXCLUDED_VARIABLES
        }
        run = subprocess.Popen(
            [sys.executable, "-m", "controlplane.supervisor", "run"],
            cwd=ROOT,
            env={**environment, "PORT": str(port), "SWITCHGEAR_DATA_DIR": str(Path(folder, "var"))},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: os.sched_setaffinity(0, set(range(os.cpu_count() or 1))),
        )
        try:
            if not is_ready(run, port, "/health/ready", START_SECONDS):
                raise SystemExit("bench: the installation does not start")
            time.sleep(SETTLE_SECONDS)
            return _watch(run.pid)
        finally:
            run.send_signal(signal.SIGTERM)
            run.wait(timeout=30)


def _watch(root: int) -> Sequence[ProcessCost]:
    before = {pid: threads_cpu_seconds(pid) for pid in _tree(root)}
    began = time.monotonic()
    time.sleep(MEASURED_SECONDS)
    spent = time.monotonic() - began
    costs: dict[str, list[tuple[float, float, float]]] = {}
    for pid in _tree(root):
        used = threads_cpu_seconds(pid) - before.get(pid, 0.0)
        costs.setdefault(_name(pid), []).append((used / spent * 100, *_memory_mib(pid)))
    found = [ProcessCost(name, *map(sum, zip(*rows, strict=True))) for name, rows in costs.items()]
    return sorted(found, key=lambda one: -one.cpu_percent)


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in Path(task, "children").read_text().split():
            yield from _tree(int(child))


def _memory_mib(pid: int) -> tuple[float, float]:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    kib = {name.rstrip(":"): int(value) for name, value, *_ in map(str.split, lines)}
    return kib["Pss"] / 1024, kib["Rss"] / 1024


def _name(pid: int) -> str:
    command = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    for part, name in (
        ("postgres", "PostgreSQL"),
        ("redis-server", "Redis"),
        ("valkey-server", "Redis"),
        ("celery worker", "worker"),
        (" worker ", "worker"),
        (" beat ", "beat"),
        ("watchdog", "watchdog"),
        ("granian", "web"),
    ):
        if part in command:
            return name
    return "supervisor"
