"""Raw pollers of data planes that record every answer, and services in processes of their own."""

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parents[2]
POLL_SECONDS = 0.05
SERVICE = """
import sys, time
from switchgear import Switchgear

url, token, name, stream, output, *keys = sys.argv[1:]
with (
    Switchgear(url, token, service=name, state_dir=None, stream=stream == "stream") as gear,
    open(output, "a", buffering=1) as log,
):
    gear.wait_ready(30)
    before = None
    while True:
        now = [key for key in keys if not gear.check(**dict([key.split(":")])).allowed]
        if now != before:
            print(time.time(), *now, file=log)
        before = now
        time.sleep(0.01)
"""


@dataclass(frozen=True)
class Answer:
    """One answer of a plane: when it was asked for, and the switches that it served as engaged."""

    plane: str
    asked_at: float
    engaged: frozenset[str]


class PlanePollers:
    """Threads that poll each plane all the time; they record all answers with a snapshot."""

    def __init__(self, urls: dict[str, str], token: str) -> None:
        self.answers: list[Answer] = []
        self._token = token
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._poll, args=item, daemon=True) for item in urls.items()
        ]

    def __enter__(self) -> "PlanePollers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(10)

    def has(self, plane: str, switches: Sequence[str]) -> bool:
        """Return True if the plane's last answer served all `switches` as engaged."""
        answers = [each for each in self.answers if each.plane == plane]
        return bool(answers) and answers[-1].engaged >= set(switches)

    def find_released(self, plane: str, switch: str, since: float) -> list[Answer]:
        """Return the plane's answers, asked for after `since`, that let `switch` go."""
        return [
            each
            for each in self.answers
            if each.plane == plane and each.asked_at > since and switch not in each.engaged
        ]

    def _poll(self, plane: str, url: str) -> None:
        headers = {"Authorization": f"Bearer {self._token}"}
        with httpx.Client(base_url=url, headers=headers, timeout=5) as client:
            while not self._stopping.wait(POLL_SECONDS):
                asked_at = time.time()
                try:
                    response = client.get("/api/v1/snapshot")
                except httpx.TransportError:
                    continue  # Killed, and about to be restarted.
                if response.status_code == 503:
                    continue  # Started, and about to have a snapshot.
                switches = response.raise_for_status().json()["switches"]
                engaged = frozenset(each["id"] for each in switches if each["state"] == "engaged")
                self.answers.append(Answer(plane, asked_at, engaged))


class Service:
    """A service with the client library, in a process of its own, that records its refusals."""

    def __init__(self, output: Path) -> None:
        self._output = output

    def read_log(self) -> list[tuple[float, set[str]]]:
        """Return each change: when, and the switches whose calls were refused from then on."""
        lines = self._output.read_text().splitlines() if self._output.exists() else []
        return [(float(at), set(keys)) for at, *keys in map(str.split, lines)]

    def refuses(self, switch: str) -> bool:
        log = self.read_log()
        return bool(log) and switch in log[-1][1]

    def refused_at(self, switch: str) -> float:
        """Return the UNIX time at which the first call for `switch` was refused."""
        return next(at for at, keys in self.read_log() if switch in keys)


@contextlib.contextmanager
def service(
    url: str, token: str, switches: Sequence[str], *, name: str, stream: bool, output: Path
) -> Iterator[Service]:
    """Run a service that follows the plane at `url`, by stream or by polls, until the end."""
    way = "stream" if stream else "poll"
    process = subprocess.Popen(
        [sys.executable, "-c", SERVICE, url, token, name, way, str(output), *switches],
        cwd=ROOT / "client",
    )
    try:
        yield Service(output)
        assert process.poll() is None, f"the service {name} has ended"
    finally:
        process.kill()
        process.wait(10)
