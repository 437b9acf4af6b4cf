"""Servers under test: granian as in production, one worker, held to one core."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOST = "127.0.0.1"
OPTIONS = ("--interface", "asgi", "--workers", "1", "--log-level", "warning")
START_SECONDS = 20.0


@dataclass(frozen=True)
class Server:
    """A running server; `pid` is granian's main process, its worker is a child of it."""

    pid: int
    port: int

    def cpu_seconds(self) -> float:
        """CPU time of the worker so far (Linux counts it in hundredths of a second)."""
        ticks = 0
        for child in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split():
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def running(
    application: str,
    *,
    core: int,
    loop: str,
    answers_at: str,
    more: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """Serve `application` until the block ends; `answers_at` is a path that says it is up."""
    port = _free_port()
    command = [sys.executable, "-m", "granian", *OPTIONS, "--loop", loop]
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            [*command, "--host", HOST, "--port", str(port), application],
            cwd=ROOT,
            env={**os.environ, **(more or {})},
            stdout=output,
            stderr=output,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )
        try:
            if not _answers(process, port, answers_at):
                output.seek(0)
                raise SystemExit(f"bench: {application} does not start:\n{output.read()[-3000:]}")
            yield Server(process.pid, port)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=15)


def _answers(process: subprocess.Popen[bytes], port: int, path: str) -> bool:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            connection = HTTPConnection(HOST, port, timeout=2)
            connection.request("GET", path)
            if connection.getresponse().status < 500:
                return True
        except OSError:
            pass
        time.sleep(0.1)
    return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
    return port
