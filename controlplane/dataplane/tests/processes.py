"""Servers as real processes, each with a folder of its own, and ways to disturb them."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx

from controlplane import asgi_server
from controlplane.tests.installation import Installation, alive, free_port, wait_until

ROOT = Path(__file__).resolve().parents[3]


class Server:
    """A server that keeps its port across restarts."""

    def __init__(
        self, arguments: list[str], environment: Mapping[str, str], output: Path, port: int
    ) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.environment = dict(environment)
        self._arguments = arguments
        self._said = output
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *, ready: str = "/health/ready/data", ready_within: float = 20) -> None:
        with self._said.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, *self._arguments],
                cwd=ROOT,
                env=self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        wait_until(lambda: self.answers(ready), ready_within, self.read_output)

    def answers(self, path: str) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.read_output()
        try:
            return httpx.get(self.url + path, timeout=2, verify=False).status_code == 200
        except httpx.TransportError:
            return False

    def read_output(self) -> str:
        return self._said.read_text(errors="replace")[-6000:]

    def logged(self, event: str) -> list[dict[str, Any]]:
        """Return the log lines of this event."""
        lines = self._said.read_text(errors="replace").splitlines()
        parsed = [json.loads(line) for line in lines if line.startswith("{")]
        return [line for line in parsed if line.get("event") == event]

    def workers(self) -> list[int]:
        """Return the serving processes: the children of the one that was started."""
        assert self.process is not None
        found = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        pids = [int(pid) for pid in found.split()]
        return [pid for pid in pids if alive(pid) and not _is_tracker(pid)]

    def cpu_seconds(self) -> float:
        """Return the processor time that the started process and its workers have used."""
        assert self.process is not None
        ticks = 0
        for pid in (self.process.pid, *self.workers()):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def kill(self) -> None:
        """Kill the whole process group, as the kernel does when memory runs out."""
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)


@contextlib.contextmanager
def data_plane(
    environment: Mapping[str, str],
    folder: Path,
    *,
    workers: int = 1,
    port: int | None = None,
    start: bool = True,
) -> Iterator[Server]:
    """Run `manage.py dataplane` with its copy in `folder`, until the test ends."""
    folder.mkdir(exist_ok=True, parents=True)
    port = port or free_port()
    arguments = ["manage.py", "dataplane", "--workers", str(workers), "--port", str(port)]
    variables = {**environment, "SWITCHGEAR_DATA_DIR": str(folder)}
    server = Server(arguments, variables, Path(f"{folder}-said.txt"), port)
    with _served(server):
        if start:
            server.start()
        yield server


@contextlib.contextmanager
def relay(
    folder: Path, token: str, upstream_port: int, *, workers: int = 1, start: bool = True
) -> Iterator[Server]:
    """Run `manage.py dataplane --upstream` with its copy in `folder`, until the test ends."""
    folder.mkdir(exist_ok=True, parents=True)
    port = free_port()
    upstream = f"http://127.0.0.1:{upstream_port}"
    arguments = ["manage.py", "dataplane", "--upstream", upstream, "--port", str(port)]
    variables = {
        "PATH": os.environ["PATH"],
        "SWITCHGEAR_DATA_DIR": str(folder),
        "SWITCHGEAR_TOKEN": token,
        "PLANE_NAME": folder.name,
    }
    arguments += ["--workers", str(workers)]
    server = Server(arguments, variables, Path(f"{folder}-said.txt"), port)
    with _served(server):
        if start:
            server.start()
        yield server


@contextlib.contextmanager
def web(
    environment: Mapping[str, str], port: int, output: Path, *, ready_within: float = 20
) -> Iterator[Server]:
    """The web process of an installation, started by the test on its port."""
    arguments = asgi_server.server_arguments(
        "controlplane.asgi:application", host="127.0.0.1", port=port, workers=1
    )
    server = Server(arguments, environment, output, port)
    with _served(server):
        server.start(ready_within=ready_within)
        yield server


@contextlib.contextmanager
def _served(server: Server) -> Iterator[None]:
    try:
        yield
    finally:
        if server.process is not None:
            server.kill()


def addresses(installation: Installation) -> dict[str, str]:
    """Return the environment of a data plane elsewhere that follows this installation."""
    found = installation.services()
    return {
        **installation.environment,
        "DATABASE_URL": found["database_url"],
        "DATABASE_OWNER_URL": found["database_owner_url"],
        "REDIS_URL": found["redis_url"],
    }


@contextlib.contextmanager
def killed(installation: Installation, *services: str) -> Iterator[None]:
    """Keep these processes killed, and the supervisor stopped, within the context."""
    supervisor = installation.process
    assert supervisor is not None
    supervisor.send_signal(signal.SIGSTOP)
    try:
        for service in services:
            kill(installation, service)
        yield
    finally:
        supervisor.send_signal(signal.SIGCONT)


def kill(installation: Installation, word: str) -> None:
    """Kill each process of the installation with this word in its command line, and wait."""

    def living() -> list[int]:
        return [pid for pid, line in installation.tree().items() if word in line and alive(pid)]

    for pid in living():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not living(), 10, installation.tree)


def kept_version(folder: Path) -> int:
    """Return the version in `current` in a data plane's folder; -1 without one."""
    try:
        kept = (folder / "snapshot" / "current").read_bytes()
    except FileNotFoundError:  # Not written yet, or being replaced.
        return -1
    _, _, text = kept.partition(b"\n")
    version: int = json.loads(text)["snapshot"]["version"]
    return version


def copied(folder: Path, to: Path) -> Path:
    """Copy the snapshot and the secret of a data plane's folder, for another one to begin with.

    The latest snapshot is left out: it is `current` itself once that is written.
    """
    for name in ("snapshot", "secrets"):
        # A draft may be about to become the current copy.
        shutil.copytree(
            folder / name, to / name, ignore=shutil.ignore_patterns(".*", "draft*", "latest-*")
        )
    return to


def _is_tracker(pid: int) -> bool:
    return b"resource_tracker" in Path(f"/proc/{pid}/cmdline").read_bytes()
