"""Clients that change switches through the API, with Idempotency-Keys and retries."""

import itertools
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from controlplane.tests.chaos.judge import RAMP_PERCENTS, Operation

REASON = "provider outage, 5xx on completions since 02:10"
JUSTIFICATION = "provider confirmed the fix, load test passed"
ATTEMPT_SECONDS = 8.0
GIVE_UP_SECONDS = 120.0
RETRY_SECONDS = 0.1
RETRIED = {429, 502, 503, 504}
FEATURES = tuple(f"feature:chaos-{number}" for number in range(6))
EXPERIMENTS = tuple(f"experiment:chaos-{number}" for number in range(3))
"""Only changes of experiments are announced: Slack takes one message a second."""
PROBES = tuple(f"feature:probe-{number}" for number in range(8))
SWITCHES = (*FEATURES, *EXPERIMENTS, *PROBES)

Body = Mapping[str, Any]


@dataclass(frozen=True)
class Request:
    """A change to ask for: the end of its path, its body and the action of its audit row."""

    switch: str
    verb: str
    action: str
    body: Body

    @property
    def path(self) -> str:
        return f"/api/v1/switches/{self.switch.replace(':', '/')}/{self.verb}"


class Writer:
    """A thread that requests one change after another until it is stopped.

    `choose` returns the next request; `pause` returns the seconds before it. With several `urls`
    each attempt goes to the next one.
    """

    def __init__(
        self,
        urls: Sequence[str],
        token: str,
        choose: Callable[[], Request],
        pause: Callable[[], float],
    ) -> None:
        self._urls, self._choose, self._pause = itertools.cycle(urls), choose, pause
        self._headers = {"Authorization": f"Bearer {token}"}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.operations: list[Operation] = []
        self.problems: list[str] = []

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop requesting; the last request may be retried until it is answered."""
        self._stop.set()

    def join(self) -> None:
        self._thread.join(GIVE_UP_SECONDS + ATTEMPT_SECONDS + 5)
        if self._thread.is_alive():
            self.problems.append("a writer never came to an end")

    def _run(self) -> None:
        with httpx.Client(headers=self._headers, timeout=ATTEMPT_SECONDS) as client:
            while not self._stop.wait(self._pause()):
                done = perform(client, self._urls, self._choose(), self.problems)
                self.operations.append(done)


def perform(
    client: httpx.Client, urls: Iterator[str], request: Request, problems: list[str]
) -> Operation:
    """Retry with the same key until the response is final."""
    key, attempts, began = str(uuid.uuid4()), 0, time.monotonic()
    headers = {"Idempotency-Key": key, "X-Request-ID": key}
    status, version = None, None
    while status is None and time.monotonic() - began < GIVE_UP_SECONDS:
        attempts += 1
        try:
            answer = client.post(f"{next(urls)}{request.path}", json=request.body, headers=headers)
        except httpx.TransportError:
            time.sleep(RETRY_SECONDS)
            continue
        if answer.status_code in RETRIED:
            time.sleep(RETRY_SECONDS)
            continue
        status = answer.status_code
        if status == 200:
            version = answer.json().get("version")
        elif status not in {202, 409}:
            problems.append(f"{request}: {status} {answer.text[:300]}")
    ended = time.monotonic()
    if status is None:
        problems.append(f"{request}: no answer in {ended - began:.0f} s")
    return Operation(key, request.action, request.switch, status, version, began, ended, attempts)


def operator(draw: random.Random, switches: tuple[str, ...]) -> Callable[[], Request]:
    """Return a chooser of an operator's requests, most of which succeed."""
    verbs = (engage, engage, engage_briefly, extend, release, release, ramp, ramp, undo)

    def choose() -> Request:
        return draw.choice(verbs)(draw.choice(switches), draw)

    return choose


def prober() -> Callable[[], Request]:
    """Return a choice that engages, whose time is measured, and releases, in turns."""
    turn = 0

    def choose() -> Request:
        nonlocal turn
        switch = PROBES[turn // 2 % len(PROBES)]
        turn += 1
        draw = random.Random(turn)
        return engage(switch, draw) if turn % 2 else release(switch, draw)

    return choose


def engage(switch: str, _draw: random.Random) -> Request:
    return Request(switch, "engage", "switch.engaged", {"reason": REASON, "expires_in": "24h"})


def engage_briefly(switch: str, draw: random.Random) -> Request:
    body = {
        "reason": REASON,
        "expires_in": f"{draw.randint(2, 9)}s",
        "on_expiry": draw.choice(("release", "ramp", "hold")),
    }
    return Request(switch, "engage", "switch.engaged", body)


def extend(switch: str, _draw: random.Random) -> Request:
    return Request(switch, "extend", "switch.extended", {"reason": REASON, "expires_in": "48h"})


def release(switch: str, _draw: random.Random) -> Request:
    body = {"justification": JUSTIFICATION, "mode": "immediate"}
    return Request(switch, "release", "switch.released", body)


def ramp(switch: str, draw: random.Random) -> Request:
    dwell = draw.choice((1, 2))
    plan = [{"percent": percent, "dwell_seconds": dwell} for percent in RAMP_PERCENTS]
    return Request(
        switch, "release", "ramp.started", {"justification": JUSTIFICATION, "plan": plan}
    )


def undo(switch: str, _draw: random.Random) -> Request:
    return Request(switch, "undo", "switch.undone", {})
