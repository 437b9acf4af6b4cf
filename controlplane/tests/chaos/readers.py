"""Services that read switches in each supported way and record the responses."""

import base64
import contextlib
import itertools
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from controlplane.tests.chaos.judge import Decision, Resource, Snapshot
from controlplane.tests.chaos.truth import from_snapshot
from controlplane.tests.chaos.writers import SWITCHES
from controlplane.tests.installation import ROOT

TIMEOUT_SECONDS = 10.0
PAUSE_SECONDS = 0.3
HOLD_SECONDS = 5
RETRY_SECONDS = 0.2
UNREAD_SECONDS = 30.0
EXPECTED = {200, 304, 503}
SNAPSHOT = "/api/v1/snapshot"

Turn = Callable[[httpx.Client], None]


class Reader:
    """A thread that reads one URL in one way until it is stopped.

    `snapshots` and `decisions` are the responses; `version` is the newest one received. With
    `memory` it sends its version, so it must never receive an older one.
    """

    def __init__(self, name: str, url: str, token: str, way: str) -> None:
        self.name, self.memory = f"{name} {way}", way in {"known", "held", "stream", "socket"}
        self.snapshots: list[Snapshot] = []
        self.decisions: list[Decision] = []
        self.resources: list[Resource] = []
        self.problems: list[str] = []
        self.failed = 0
        self._url, self._headers = url, {"Authorization": f"Bearer {token}"}
        self._mark = ""
        self._turns = itertools.count()
        self._known: set[str] = set()
        self._stop = threading.Event()
        turns: Mapping[str, Turn] = {
            "new": self._ask_as_new,
            "known": self._ask,
            "held": self._ask_and_wait,
            "stream": self._follow,
            "check": self._check,
            "ofrep": self._evaluate,
            "list": self._list,
            "socket": self._listen,
        }
        self._turn = turns[way]
        self._pause = PAUSE_SECONDS if way not in {"held", "stream", "socket"} else 0.01
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def version(self) -> int:
        if self.resources:
            return max(one.version for one in self.resources)
        answers = self.snapshots or self.decisions
        return answers[-1].version if answers else 0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def join(self) -> None:
        self._thread.join(TIMEOUT_SECONDS + HOLD_SECONDS + 5)
        if self._thread.is_alive():
            self.problems.append(f"{self.name} never came to an end")

    def _run(self) -> None:
        with httpx.Client(
            base_url=self._url, headers=self._headers, timeout=TIMEOUT_SECONDS
        ) as client:
            while not self._stop.wait(self._pause):
                try:
                    self._turn(client)
                except (httpx.TransportError, OSError, WebSocketException):
                    self.failed += 1
                    self._stop.wait(RETRY_SECONDS)

    def _ask_as_new(self, client: httpx.Client) -> None:
        self._take(client.get(SNAPSHOT))

    def _ask(self, client: httpx.Client, query: str = "") -> None:
        self._take(client.get(f"{SNAPSHOT}{query}", headers={"If-None-Match": f'"{self._mark}"'}))

    def _ask_and_wait(self, client: httpx.Client) -> None:
        self._ask(client, f"?wait={HOLD_SECONDS}")

    def _take(self, answer: httpx.Response) -> None:
        if not self._is_expected(answer):
            return
        if answer.status_code == 200:
            self._keep(answer.json())

    def _follow(self, client: httpx.Client) -> None:
        headers = {"Last-Event-ID": self._mark} if self._mark else {}
        # A comment comes every 15 seconds; silence for longer is a broken connection.
        with client.stream("GET", f"{SNAPSHOT}/stream", headers=headers, timeout=20) as answer:
            if answer.status_code != 200:
                answer.read()
                self._is_expected(answer)
                self._stop.wait(RETRY_SECONDS)
                return
            for line in answer.iter_lines():
                if line.startswith("data:"):
                    self._keep(json.loads(line.removeprefix("data:")))
                if self._stop.is_set():
                    return

    def _check(self, client: httpx.Client) -> None:
        turn = next(self._turns)
        switch, targeting_key = SWITCHES[turn % len(SWITCHES)], f"u{turn}"
        scope, _, key = switch.partition(":")
        body = {f"{scope}s": [key], "targeting_key": targeting_key}
        answer = client.post("/api/v1/check", json=body)
        if not self._is_expected(answer) or answer.status_code != 200:
            return
        told = answer.json()
        self.decisions.append(
            Decision(
                self.name, time.time(), told["version"], switch, targeting_key, told["allowed"]
            )
        )

    def _evaluate(self, client: httpx.Client) -> None:
        turn = next(self._turns)
        switch, targeting_key = SWITCHES[turn % len(SWITCHES)], f"u{turn}"
        body = {"context": {"targetingKey": targeting_key}}
        answer = client.post(f"/ofrep/v1/evaluate/flags/{switch}", json=body)
        if answer.status_code == 404 and switch not in self._known:
            return
        if not self._is_expected(answer) or answer.status_code != 200:
            return
        self._known.add(switch)
        told = answer.json()
        version, allowed = told["metadata"]["version"], told["value"]
        self.decisions.append(
            Decision(self.name, time.time(), version, switch, targeting_key, allowed)
        )

    def _list(self, client: httpx.Client) -> None:
        answer = client.get("/api/v1/switches/")
        if self._is_expected(answer) and answer.status_code == 200:
            for one in answer.json()["results"]:
                self._keep_resource(one, self.name)

    def _listen(self, client: httpx.Client) -> None:
        address = f"{self._url.replace('http', 'ws')}/ws/live/"
        name = f"{self.name} #{next(self._turns)}"
        with connect(
            address, additional_headers=self._headers, open_timeout=TIMEOUT_SECONDS
        ) as listening:
            listening.send(json.dumps({"subscribe": ["switches"]}))
            while not self._stop.is_set():
                with contextlib.suppress(TimeoutError):
                    body = json.loads(listening.recv(timeout=1))
                    if body["topic"] == "hello" or body.get("event") == "resync":
                        self._list(client)  # What was missed comes over HTTP.
                    elif "id" in body.get("data", {}):
                        self._keep_resource(body["data"], name)

    def _keep_resource(self, told: Mapping[str, Any], name: str) -> None:
        self.resources.append(
            Resource(
                f"{name} {told['id']}",
                time.time(),
                told["version"],
                told["id"],
                told["state"],
                float(told["allow_percent"]),
                told["expires_at"],
            )
        )

    def _is_expected(self, answer: httpx.Response) -> bool:
        if answer.status_code not in EXPECTED:
            self.problems.append(f"{self.name}: {answer.status_code} {answer.text[:300]}")
        if answer.status_code == 503:
            self.failed += 1
        return answer.status_code in EXPECTED

    def _keep(self, told: Mapping[str, Any]) -> None:
        self._mark = f"{told['epoch']}.{told['version']}"
        self.snapshots.append(
            Snapshot(
                self.name,
                time.time(),
                told["epoch"],
                told["version"],
                from_snapshot(told["switches"]),
            )
        )


class Service:
    """A process that decides with the client library. Its decisions are read when it has ended."""

    memory = True
    snapshots: Sequence[Snapshot] = ()
    resources: Sequence[Resource] = ()

    def __init__(self, name: str, url: str, token: str, folder: Path) -> None:
        self.name = f"{name} library"
        self.decisions: list[Decision] = []
        self.problems: list[str] = []
        self._url, self._token = url, token
        self._lines, self._said = folder / f"{name}-library.jsonl", folder / f"{name}-library.txt"
        self._process: subprocess.Popen[str] | None = None

    @property
    def version(self) -> int:
        """The version of its last decision so far."""
        self._read()
        return self.decisions[-1].version if self.decisions else 0

    def start(self) -> None:
        paths = [str(ROOT / "client"), str(ROOT), os.environ.get("PYTHONPATH", "")]
        environment = {
            **os.environ,
            "SWITCHGEAR_TOKEN": self._token,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        }
        with self._lines.open("wb") as lines, self._said.open("wb") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "controlplane.tests.chaos.service", self._url],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=lines,
                stderr=said,
                text=True,
            )

    def stop(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def join(self) -> None:
        assert self._process is not None
        try:
            status = self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait(10)
        if status:
            said = self._said.read_text(errors="replace")[-2000:]
            self.problems.append(f"{self.name} ended with {status}: {said}")
        self._read()

    def _read(self) -> None:
        whole, _, _ = self._lines.read_text().rpartition("\n")
        lines = whole.splitlines()[len(self.decisions) :]
        self.decisions += [Decision(self.name, *json.loads(line)) for line in lines]


class Unread:
    """Sockets and streams of a slow client: opened, never read, and reopened now and then."""

    def __init__(self, port: int, token: str) -> None:
        self._port, self._token = port, token
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def join(self) -> None:
        self._thread.join(TIMEOUT_SECONDS)

    def _run(self) -> None:
        while not self._stop.is_set():
            opened = [self._open(path) for path in ("/ws/live/", f"{SNAPSHOT}/stream")]
            self._stop.wait(UNREAD_SECONDS)
            for one in filter(None, opened):
                one.close()

    def _open(self, path: str) -> socket.socket | None:
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [
            f"GET {path} HTTP/1.1",
            "Host: localhost",
            f"Authorization: Bearer {self._token}",
        ]
        if path.startswith("/ws/"):
            lines += [
                "Connection: Upgrade",
                "Upgrade: websocket",
                "Sec-WebSocket-Version: 13",
                f"Sec-WebSocket-Key: {key}",
            ]
        one = socket.socket()
        try:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.settimeout(TIMEOUT_SECONDS)
            one.connect(("127.0.0.1", self._port))
            one.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        except OSError:
            one.close()
            return None
        return one
