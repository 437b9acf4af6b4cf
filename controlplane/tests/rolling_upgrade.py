"""A rolling upgrade: processes of two releases on one database, replaced one by one.

Clients poll a list of addresses, as through a load balancer: a process to be replaced is removed
from the list, then terminated, and its successor is added when it is ready.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path

import httpx

from controlplane.tests.installation import free_port, wait_until
from controlplane.tests.observed_ramps import REASON

READY_SECONDS = 120
READY = {"web": "/health/ready", "plane": "/health/ready/data"}
COMMAND_LINE = """
import json, sys
from controlplane.processes import command_lines
print(json.dumps(list(getattr(command_lines, sys.argv[1])(**json.loads(sys.argv[2])))))
"""
LEAVING_SECONDS = 0.5
"""Time between leaving the list and the signal, as with a preStop hook."""


class Process:
    """A process of a release, with its log in `folder`."""

    def __init__(self, name: str, root: Path, folder: Path, variables: dict[str, str]) -> None:
        self.name, self.port = name, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / f"{name}-{self.port}.log"
        data = folder / f"data-{name}"
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, *self._arguments(root)],
                cwd=root,
                env={**os.environ, **variables, "SWITCHGEAR_DATA_DIR": str(data)},
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def _arguments(self, root: Path) -> list[str]:
        """Return the arguments that the release in `root` uses for this process."""
        kind = self.name.partition("-")[0]
        given = {}
        if kind in READY:
            kind = "web" if kind == "web" else "dataplane"
            given = {"host": "127.0.0.1", "port": self.port, "workers": 1}
        told = subprocess.run(
            [sys.executable, "-c", COMMAND_LINE, kind, json.dumps(given)],
            cwd=root, capture_output=True, check=True, timeout=60,
        )  # fmt: skip
        arguments: list[str] = json.loads(told.stdout)
        return arguments

    def is_ready(self) -> bool:
        assert self._process.poll() is None, self.log.read_text()[-3000:]
        path = READY.get(self.name.partition("-")[0])
        if path is None:
            return True
        try:
            return httpx.get(f"{self.url}{path}", timeout=5).status_code == 200
        except httpx.HTTPError:
            return False

    def wait(self) -> None:
        wait_until(self.is_ready, READY_SECONDS, lambda: self.log.read_text()[-3000:])

    def stop(self) -> float:
        """Stop the process; return the seconds it took to end by itself."""
        began = time.monotonic()
        self._process.terminate()
        self._process.wait(60)
        return time.monotonic() - began

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()  # Not killed: it would leave the processes it has itself.
            self._process.wait(60)


class Fleet:
    """The processes of an installation; `serving` are those that receive requests, by kind."""

    NAMES = ("web-1", "web-2", "plane-1", "plane-2", "worker", "beat", "watchdog")

    def __init__(self, folder: Path, variables: dict[str, str]) -> None:
        self._folder, self._variables = folder, variables
        self.members: dict[str, Process] = {}
        self.serving: dict[str, list[Process]] = {"web": [], "plane": []}
        self._turn = 0
        self._list = threading.Lock()

    def start(self, root: Path) -> None:
        for name in self.NAMES:
            self.members[name] = self._start_process(name, root)
        for name, process in self.members.items():
            process.wait()
            self._join(name, process)

    def roll(self, root: Path, names: Sequence[str] = NAMES) -> dict[str, float]:
        """Replace each of `names` by one of the release in `root`.

        Return the seconds each old process took to end.
        """
        took = {}
        for name in names:
            old = self.members[name]
            kind = name.partition("-")[0]
            if kind in self.serving:
                with self._list:
                    self.serving[kind] = [one for one in self.serving[kind] if one is not old]
                time.sleep(LEAVING_SECONDS)
            took[name] = old.stop()
            self.members[name] = self._start_process(name, root)
            self.members[name].wait()
            self._join(name, self.members[name])
        return took

    def ask(
        self, kind: str, path: str, headers: Mapping[str, str], body: object = None
    ) -> "Answer":
        """Send a GET, or a POST with a body, to the next process in turn, on a new connection.

        The request is sent before any process can leave the list, however long a busy machine
        delays a thread between choosing and sending. Raises OSError, HTTPException.
        """
        with self._list:
            self._turn += 1
            process = self.serving[kind][self._turn % len(self.serving[kind])]
            connection = HTTPConnection("127.0.0.1", process.port, timeout=30)
            if body is None:
                connection.request("GET", path, headers=dict(headers))
            else:
                given = {"Content-Type": "application/json", **headers}
                connection.request("POST", path, json.dumps(body), given)
        return Answer(process, connection)

    def end(self) -> None:
        for process in self.members.values():
            process.end()

    def _start_process(self, name: str, root: Path) -> Process:
        return Process(name, root, self._folder, self._variables)

    def _join(self, name: str, process: Process) -> None:
        kind = name.partition("-")[0]
        if kind in self.serving:
            with self._list:
                self.serving[kind] = [*self.serving[kind], process]


class Answer:
    """The pending response of `process`."""

    def __init__(self, process: Process, connection: HTTPConnection) -> None:
        self.process, self._connection = process, connection

    def read(self) -> tuple[HTTPResponse, bytes]:
        """Raises OSError, HTTPException."""
        try:
            response = self._connection.getresponse()
            return response, response.read()
        finally:
            self._connection.close()


class Pollers:
    """Services that poll the data planes all the time, each request on a connection of its own."""

    def __init__(self, fleet: Fleet, token: str, *, threads: int, a_second: float) -> None:
        self._fleet = fleet
        self._headers = {"Authorization": f"Bearer {token}"}
        self._pause = threads / a_second
        self._stop = threading.Event()
        self.failures: list[str] = []
        self.statuses: Counter[int] = Counter()
        self.regressions: list[str] = []
        self.longest = 0.0
        self._threads = [threading.Thread(target=self._poll) for _ in range(threads)]
        self._threads.append(threading.Thread(target=self._poll, args=("?wait=5",)))

    def __enter__(self) -> "Pollers":
        self.began = time.monotonic()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self.seconds = time.monotonic() - self.began

    @property
    def rate(self) -> float:
        return self.statuses.total() / self.seconds

    def _poll(self, query: str = "") -> None:
        seen: dict[str, int] = {}
        tags: dict[str, str] = {}
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                self._ask(query, seen, tags)
            except (OSError, HTTPException) as error:
                self.failures.append(repr(error))
            took = time.monotonic() - began
            if not query:
                self.longest = max(self.longest, took)
            self._stop.wait(max(0.0, self._pause - took))

    def _ask(self, query: str, seen: dict[str, int], tags: dict[str, str]) -> None:
        # Each client holds on to what its last answer was, as services do.
        headers = {**self._headers, "If-None-Match": tags.get("newest", '""')}
        asked = self._fleet.ask("plane", f"/api/v1/snapshot{query}", headers)
        answer, content = asked.read()
        name, url = asked.process.name, asked.process.url
        self.statuses[answer.status] += 1
        if answer.status not in {200, 304}:
            self.failures.append(f"{name}: {answer.status} {content[:200]!r}")
        if answer.status == 200:
            version = json.loads(content)["version"]
            if version < seen.get(url, 0):
                self.regressions.append(f"{name}: {seen[url]} → {version}")
            seen[url], tags["newest"] = version, answer.headers["ETag"]


class People:
    """A thread that engages one switch after the other, through whichever console is there."""

    def __init__(self, fleet: Fleet, token: str) -> None:
        self._fleet, self._stop = fleet, threading.Event()
        self._headers = {"Authorization": f"Bearer {token}"}
        self.done: list[str] = []
        self.failures: list[str] = []
        self.longest = 0.0
        self._thread = threading.Thread(target=self._act)

    def post(self, path: str, body: object) -> tuple[int, str]:
        """The status and the text; OSError or HTTPException if there was no answer."""
        asked = self._fleet.ask("web", f"/api/v1/switches/{path}", self._headers, body)
        answer, content = asked.read()
        return answer.status, content.decode()

    def __enter__(self) -> "People":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _act(self) -> None:
        number = 0
        while not self._stop.wait(1):
            number += 1
            body = {"reason": REASON, "expires_in": "24h"}
            began = time.monotonic()
            try:
                status, said = self.post(f"feature/f{number}/engage", body)
            except (OSError, HTTPException) as error:
                self.failures.append(repr(error))
                continue
            self.longest = max(self.longest, time.monotonic() - began)
            if status == 200:
                self.done.append(f"feature:f{number}")
            else:
                self.failures.append(f"{status} {said}")
