"""The servers that are measured: granian as in production, one worker, pinned to one CPU core."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

from controlplane import asgi_server

ROOT = Path(__file__).resolve().parent.parent
HOST = "127.0.0.1"
START_SECONDS = 60.0
SETTLE_SECONDS = 0.3
SETTLE_LOOKS = 60


@dataclass(frozen=True)
class Served:
    """An ASGI application to serve, and a path that responds once it is up."""

    application: str
    answers_at: str


PLANE = Served("controlplane.dataplane:app", "/health/ready/data")
WEB = Served("controlplane.asgi:application", "/health/ready/data")
BARE = Served("bench.bare_asgi:app", "/200")
HOLDER = Served("bench.bare_asgi:holder", "/200")


@dataclass(frozen=True)
class ServerUnderTest:
    """A running server; `pid` is granian's main process, whose child is the worker."""

    pid: int
    port: int

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def cpu_seconds(self) -> float:
        """Return the CPU time of the worker."""
        return sum(map(cpu_seconds, self._workers()))

    def threads_cpu_seconds(self) -> float:
        """Return the CPU time of the worker's living threads, in nanosecond resolution."""
        return sum(map(threads_cpu_seconds, self._workers()))

    def rss_bytes(self) -> int:
        """Return the resident memory of the worker."""
        pages = sum(
            int(Path(f"/proc/{worker}/statm").read_text().split()[1]) for worker in self._workers()
        )
        return pages * os.sysconf("SC_PAGE_SIZE")

    def settle(self) -> None:
        """Wait until the worker is idle; end the run if it never is."""
        for _ in range(SETTLE_LOOKS):
            before = self.cpu_seconds()
            time.sleep(SETTLE_SECONDS)
            if self.cpu_seconds() - before <= SETTLE_SECONDS / 10:
                return
        raise SystemExit("bench: the server does not come to rest")

    def pids(self) -> list[int]:
        """Return the process ids of granian's main process and its worker."""
        return [self.pid, *self._workers()]

    def _workers(self) -> list[int]:
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        return [int(child) for child in children.split()]


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process, in steps of 0.01 s."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def threads_cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process's living threads, in nanosecond resolution."""
    files = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(file.read_text().split()[0]) for file in files) / 1e9


@contextlib.contextmanager
def running(
    served: Served,
    *,
    core: int,
    loop: str,
    answers: Path | None = None,
    port: int | None = None,
    variables: Mapping[str, str] | None = None,
) -> Iterator[ServerUnderTest]:
    """Context manager: run a server during the block, with more environment `variables`.

    `answers` is the file of responses for applications of :mod:`bench.bare_asgi`.
    """
    port = port or free_port()
    given = {} if answers is None else {"BENCH_ANSWERS": str(answers)}
    *options, target = asgi_server.server_arguments(
        served.application, host=HOST, port=port, workers=1
    )
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            [sys.executable, *options, "--loop", loop, target],
            cwd=ROOT,
            env={**os.environ, **given, **(variables or {})},
            stdout=output,
            stderr=output,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )
        try:
            if not is_ready(process, port, served.answers_at, START_SECONDS):
                output.seek(0)
                raise SystemExit(
                    f"bench: {served.application} does not start:\n{output.read()[-3000:]}"
                )
            yield ServerUnderTest(process.pid, port)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=15)


def is_ready(process: subprocess.Popen[bytes], port: int, path: str, seconds: float) -> bool:
    """Return True once the process answers with 200; False if it ends or does not in `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        caller = HTTPConnection(HOST, port, timeout=5)
        with contextlib.suppress(OSError), contextlib.closing(caller):
            caller.request("GET", path)
            if caller.getresponse().status == 200:
                return True
        time.sleep(0.1)
    return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
    return port
