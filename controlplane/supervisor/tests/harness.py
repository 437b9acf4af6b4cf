"""Runs under test: started, watched, and looked for afterwards."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg
import redis

ROOT = Path(__file__).resolve().parents[3]
OUTSIDE_SERVICES = {
    "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
    "REDIS_URL": "redis://127.0.0.1:1/0",
}
STAND_IN = [sys.executable, "-m", "controlplane.supervisor.tests.stand_in"]
_SERVICE_VARIABLES = {"DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL", "PYTEST_ADDOPTS"}


class Run:
    """A supervisor process and its output."""

    def __init__(self, process: "subprocess.Popen[str]", data: Path, port: int) -> None:
        self.process = process
        self.data = data
        self.port = port
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    def wait_for(self, text: str, seconds: float = 60) -> None:
        wait_until(lambda: text in self.output or self.process.poll() is not None, seconds, self)
        assert text in self.output, f"{text!r} not in:\n{self.output}"

    def wait_until_ready(self) -> None:
        self.wait_for("Switchgear is ready")

    def end(self, signum: int = signal.SIGTERM, seconds: float = 10) -> tuple[int, float]:
        """The exit code after a signal, and how long it took."""
        before = time.monotonic()
        self.process.send_signal(signum)
        return self.wait(seconds), time.monotonic() - before

    def wait(self, seconds: float = 60) -> int:
        code = self.process.wait(seconds)
        self._reader.join(2)
        return code

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))


@contextlib.contextmanager
def start(
    data: Path,
    *,
    stand_ins: Mapping[str, str] | None = None,
    command: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    port: int | None = None,
    cwd: Path = ROOT,
    user: int | None = None,
    on_hangup: signal.Handlers = signal.SIG_DFL,
) -> Iterator[Run]:
    """Start a run on `data`, with both outputs combined; kill its remaining processes at the end.

    `on_hangup` is the inherited action of SIGHUP, independent of the test runner's.
    """
    port = port or free_port()
    kept = {name: value for name, value in os.environ.items() if name not in _SERVICE_VARIABLES}
    process = subprocess.Popen(
        command or STAND_IN,
        cwd=cwd,
        env={
            **kept,
            "SWITCHGEAR_DATA_DIR": str(data),
            "PORT": str(port),
            "STAND_INS": json.dumps(stand_ins or {}),
            **(environment or {}),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        user=user,
        group=user,
        extra_groups=[] if user else None,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, on_hangup),
    )
    run = Run(process, data, port)
    try:
        yield run
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(5)
        wait_until(lambda: not _kill_all(processes_of(data)), 5, run)


def _kill_all(pids: Sequence[int]) -> bool:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(pids)


def processes_of(data: Path) -> list[int]:
    """Return the processes started for the data directory, or working in it or its cluster."""
    marks = {os.fsencode(data), os.fsencode(cluster_of(data))}
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if (entry / "stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                continue
            words = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
            words += os.fsencode((entry / "cwd").readlink())
            if any(mark in words for mark in marks):
                found.append(int(entry.name))
    return found


def command_lines(pids: Sequence[int]) -> list[str]:
    lines = []
    for pid in pids:
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
            lines.append(f"{pid} {words.decode(errors='replace')}")
    return lines


def wait_until(condition: Callable[[], bool], seconds: float, run: Run | None = None) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"too late; printed:\n{run.output if run else ''}"
        time.sleep(0.02)


def assert_nothing_left(run: Run) -> None:
    """Assert that no process, port, lock or address file is left."""
    wait_until(lambda: not processes_of(run.data), 3, run)
    assert is_free(run.port)
    assert not list((run.data / "run").glob("*.json"))
    assert not (run.data / "run" / "lock").exists()


def is_free(port: int) -> bool:
    with socket.socket() as candidate:
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def free_port() -> int:
    with socket.socket() as candidate:
        candidate.bind(("127.0.0.1", 0))
        return int(candidate.getsockname()[1])


def services(data: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((data / "run" / "services.json").read_text())
    return found


def is_up(data: Path) -> bool:
    try:
        with psycopg.connect(services(data)["database_url"], connect_timeout=2):
            return True
    except (psycopg.OperationalError, FileNotFoundError):
        return False


def read_redis_pid(url: str) -> int:
    return int(redis.Redis.from_url(url).info("server")["process_id"])


def ping_redis(url: str) -> bool:
    try:
        return bool(redis.Redis.from_url(url).ping())
    except redis.ConnectionError:
        return False


def postmaster(cluster: Path) -> int:
    return int((cluster / "postmaster.pid").read_text().splitlines()[0])


def cluster_of(data: Path) -> Path:
    pointer = data / "postgres-home"
    home = Path(pointer.read_text().strip()) if pointer.exists() else data
    return home / "postgres"
