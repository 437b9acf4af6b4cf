"""An upgrade without a pause: processes of two releases on one database, replaced one by one.

Whoever polls goes through a list of addresses, as through a load balancer: what is to be replaced
leaves the list first, is told to end, and its successor joins when it is ready.
"""

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import httpx

from controlplane import serving
from controlplane.tests.installation import free_port, until

READY_SECONDS = 120
READY = {"web": "/health/ready", "plane": "/health/ready/data"}
LEAVING_SECONDS = 0.5
"""Between leaving the list and the signal, as a preStop hook has it."""


class Process:
    """One process of a release, with its log in `folder`."""

    def __init__(self, name: str, root: Path, folder: Path, variables: dict[str, str]) -> None:
        self.name, self.port = name, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / f"{name}-{self.port}.log"
        data = folder / f"data-{name}"
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, *self._arguments()],
                cwd=root,
                env={**os.environ, **variables, "SWITCHGEAR_DATA_DIR": str(data)},
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def _arguments(self) -> list[str]:
        celery = ("-m", "celery", "--quiet", "--app", "controlplane.celery")
        kind = self.name.partition("-")[0]
        if kind == "web":
            target = "controlplane.asgi:application"
            return serving.arguments(target, host="127.0.0.1", port=self.port, workers=1)
        if kind == "plane":
            return ["manage.py", "dataplane", "--port", str(self.port)]
        if kind == "worker":
            return [*celery, "worker", "--pool", "threads", "--without-gossip", "--without-mingle"]
        return {"beat": [*celery, "beat"], "watchdog": ["manage.py", "watchdog"]}[kind]

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
        until(self.is_ready, READY_SECONDS, lambda: self.log.read_text()[-3000:])

    def stop(self) -> float:
        """Seconds that it took to end by itself."""
        began = time.monotonic()
        self._process.terminate()
        self._process.wait(60)
        return time.monotonic() - began

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()  # Not killed: it would leave the processes it has itself.
            self._process.wait(60)


class Fleet:
    """All processes of an installation. `serving` are those that get requests, by kind."""

    NAMES = ("web-1", "web-2", "plane-1", "plane-2", "worker", "beat", "watchdog")

    def __init__(self, folder: Path, variables: dict[str, str]) -> None:
        self._folder, self._variables = folder, variables
        self.members: dict[str, Process] = {}
        self.serving: dict[str, list[Process]] = {"web": [], "plane": []}
        self._turn = 0

    def start(self, root: Path) -> None:
        for name in self.NAMES:
            self.members[name] = self._begun(name, root)
        for name, process in self.members.items():
            process.wait()
            self._join(name, process)

    def roll(self, root: Path) -> dict[str, float]:
        """Replace each by one of the release in `root`; how long each took to end, in seconds."""
        took = {}
        for name, old in list(self.members.items()):
            kind = name.partition("-")[0]
            if kind in self.serving:
                self.serving[kind] = [one for one in self.serving[kind] if one is not old]
                time.sleep(LEAVING_SECONDS)
            took[name] = old.stop()
            self.members[name] = self._begun(name, root)
            self.members[name].wait()
            self._join(name, self.members[name])
        return took

    def one_of(self, kind: str) -> Process:
        self._turn += 1
        present = self.serving[kind]
        return present[self._turn % len(present)]

    def end(self) -> None:
        for process in self.members.values():
            process.end()

    def _begun(self, name: str, root: Path) -> Process:
        return Process(name, root, self._folder, self._variables)

    def _join(self, name: str, process: Process) -> None:
        kind = name.partition("-")[0]
        if kind in self.serving:
            self.serving[kind] = [*self.serving[kind], process]


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
            process = self._fleet.one_of("plane")
            # Each client holds on to what its last answer was, as services do.
            headers = {**self._headers, "If-None-Match": tags.get(process.url, '""')}
            try:
                answer = httpx.get(
                    f"{process.url}/api/v1/snapshot{query}", headers=headers, timeout=20
                )
            except httpx.HTTPError as error:
                self.failures.append(f"{process.name}: {error!r}")
                continue
            self._look(process, answer, seen, tags)
            if not query:
                took = time.monotonic() - began
                self.longest = max(self.longest, took)
                self._stop.wait(max(0.0, self._pause - took))

    def _look(
        self,
        process: Process,
        answer: httpx.Response,
        seen: dict[str, int],
        tags: dict[str, str],
    ) -> None:
        self.statuses[answer.status_code] += 1
        if answer.status_code not in {200, 304}:
            self.failures.append(f"{process.name}: {answer.status_code} {answer.text[:200]}")
        if answer.status_code == 200:
            version = answer.json()["version"]
            if version < seen.get(process.url, 0):
                self.regressions.append(f"{process.name}: {seen[process.url]} → {version}")
            seen[process.url], tags[process.url] = version, answer.headers["ETag"]
