"""A whole installation under test: the real supervised tree, in a folder and on a port its own."""

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parent.parent.parent
PASSWORD = "a long enough password for tests"
SERVICE_VARIABLES = ("DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL", "SWITCHGEAR_DATA_DIR")


class Installation:
    """`make run` as a process, with helpers for tests."""

    def __init__(self, data_dir: Path, **variables: str) -> None:
        self.data_dir = data_dir
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        kept = {k: v for k, v in os.environ.items() if k not in SERVICE_VARIABLES}
        self.environment = {
            **kept,
            "PORT": str(self.port),
            "SWITCHGEAR_DATA_DIR": str(data_dir),
            "SWITCHGEAR_ADMIN_PASSWORD": PASSWORD,
            "SWITCHGEAR_DOCS_DIR": str(data_dir / "docs"),  # It would be built for each test.
            **variables,
        }
        self.output = data_dir.parent / f"{data_dir.name}-output.txt"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *, ready_within: float = 180) -> None:
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "controlplane.supervisor", "run"],
                cwd=ROOT,
                env=self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        wait_until(self.is_ready, ready_within, self.read_output)

    def is_ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.read_output()
        try:
            status = httpx.get(f"{self.url}/health/ready", timeout=5).json()["status"]
        except (httpx.HTTPError, ValueError, KeyError):
            return False
        return status == "ready"

    def read_output(self) -> str:
        files = (self.output, self.data_dir / "log" / "console.log")
        return "\n".join(
            file.read_text(errors="replace")[-6000:] for file in files if file.exists()
        )

    def stop(self, *, within: float = 10) -> int:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(within)

    def end(self) -> None:
        """End all of it, and remove the cluster that root keeps outside a closed folder."""
        try:
            self.stop(within=15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        pointer = self.data_dir / "postgres-home"
        if pointer.exists():
            shutil.rmtree(pointer.read_text().strip())

    def manage(self, *arguments: str) -> str:
        """Run `manage.py …` on the running installation, as its administrator would."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def token(self, *scopes: str) -> str:
        name = f"test-{secrets.token_hex(3)}"
        return self.manage("token", "create", name, "--scopes", ",".join(scopes)).split()[-1]

    def client(self, token: str, **more: object) -> httpx.Client:
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=15, **more)

    def services(self) -> dict[str, str]:
        return json.loads((self.data_dir / "run" / "services.json").read_text())

    def tree(self) -> dict[int, str]:
        """Return the installation's processes except the supervisor: pid → command line."""
        assert self.process is not None
        found, waiting = {}, [self.process.pid]
        children = _children()
        while waiting:
            for pid in children.get(waiting.pop(), []):
                found[pid] = _command_line(pid)
                waiting.append(pid)
        return found

    def pid_of(self, *words: str) -> int:
        """The oldest process whose command line has all the words."""
        matching = [pid for pid, line in self.tree().items() if all(w in line for w in words)]
        assert matching, f"no process {words} in {self.tree()}"
        return min(matching)

    @contextmanager
    def suspended(self, *words: str) -> Iterator[None]:
        """While inside, the processes matching the words do not run at all (SIGSTOP)."""
        pids = [pid for pid, line in self.tree().items() if all(w in line for w in words)]
        assert pids, f"no process {words} in {self.tree()}"
        for pid in pids:
            _signal(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                _signal(pid, signal.SIGCONT)


def _signal(pid: int, number: signal.Signals) -> None:
    """Send a signal; a process of PostgreSQL may have ended with its connection."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


@contextmanager
def running(folder: Path, **variables: str) -> Iterator[Installation]:
    """An installation that is ready; ended, by force if need be, when the test leaves."""
    installation = Installation(folder, **variables)
    try:
        installation.start()
        yield installation
    finally:
        installation.end()
        shutil.rmtree(folder, ignore_errors=True)


def wait_until(
    condition: Callable[[], bool], seconds: float, explain: Callable[[], object] = str
) -> float:
    """Wait for the condition; returns how long it took, fails with the explanation if too long."""
    started = time.monotonic()
    while not condition():
        waited = time.monotonic() - started
        assert waited < seconds, f"not within {seconds} s: {explain()}"
        time.sleep(0.05)
    return time.monotonic() - started


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def alive(pid: int) -> bool:
    """Return True if the process exists and isn't a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def _children() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            found.setdefault(parent, []).append(int(entry.name))
    return found


def _command_line(pid: int) -> str:
    try:
        return (
            Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        )
    except OSError:
        return ""
