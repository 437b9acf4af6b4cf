"""A scripted scenario that injects faults, one chapter after another.

`DEMO_SCENARIO` is `auto` (all chapters, a few minutes apart), `off`, or the name of one chapter to
repeat.
"""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from itertools import cycle
from typing import Any

from demo import load, world
from demo.faults import WELL
from demo.http_calls import Unreachable, call

UNUSED_SECONDS = 150.0
"""Seconds without an engaged switch, a ramp and a fault, after which a chapter begins."""
EVERY_SECONDS = 720.0
"""Seconds from one chapter to the next.

They keep two runs of the same chapter more than half an hour apart, since an experiment that
automation stops three times within an hour is locked.
"""
LOOK_SECONDS = 2.0
AFTERWARDS_SECONDS = 20.0
CALL_SECONDS = 5.0
MEMBER = "u002"
"""The id of a visitor who takes part in the experiment."""

log = logging.getLogger("demo")

Wait = Callable[[float], bool]
"""Sleeps for some seconds; returns True if the scenario must end."""


@dataclass(frozen=True)
class Chapter:
    """A chapter of the scenario: a fault injected into a service.

    The fault lasts for `seconds`. With `until_stopped` it ends earlier if the experiment's switch
    is engaged.
    """

    service: str
    fault: Mapping[str, Any]
    seconds: float
    tells: str
    look_at: str
    until_stopped: bool = False


CHAPTERS: Mapping[str, Chapter] = {
    "experiment": Chapter(
        service="oracle",
        fault={"errors": 0.9, "delay_ms": 300, "only": f"experiment:{world.RETRIEVAL}"},
        seconds=540.0,
        tells=(
            f"oracle's new retrieval ({world.RETRIEVAL}) fails for half of the visitors: its error"
            " budget burns, an alert opens, and its action stops the experiment. A ramp restores it"
        ),
        look_at=f"/slos/oracle-answers/ and /switches/experiment/{world.RETRIEVAL}/",
        until_stopped=True,
    ),
    "letters": Chapter(
        service="core",
        fault={"garbled": 0.5},
        seconds=60.0,
        tells=(
            "core writes amounts that synapse can't read: they become dead letters after three"
            " attempts. Edit one: replace the comma by a point, and retry it"
        ),
        look_at="/dead-letters/",
    ),
    "outage": Chapter(
        service="oracle",
        fault={"down": True},
        seconds=150.0,
        tells=(
            "oracle is down: core's breaker opens within a second. Visitors get their last answer,"
            " marked as partial, or an immediate error; the platform is degraded and core's own"
            " SLO burns. A ramp with a gate on the breaker core->oracle does not continue"
        ),
        look_at="/breakers/core/oracle/, /slos/core-availability/ and /slos/core-whole-answers/",
    ),
}


class Player:
    """A player of the scenario's chapters.

    Between steps it calls `wait`, which sleeps, and returns True if the scenario must end.
    """

    def __init__(
        self,
        ports: Mapping[str, int],
        wait: Wait,
        console: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ports = ports
        self._wait = wait
        self._console = console
        self._clock = clock

    def play(self, chapter: Chapter) -> None:
        """Play a chapter: inject its fault, wait until it is over, and remove the fault."""
        if self._inject_fault(chapter):
            log.info("%s. Watch %s%s", chapter.tells, self._console, chapter.look_at)
            self._watch(chapter)
        if self._send_fault(chapter, {}):
            log.info("%s has recovered", chapter.service)

    def _inject_fault(self, chapter: Chapter) -> bool:
        """Inject the fault; return False if the service doesn't accept it in time."""
        ends = self._clock() + chapter.seconds
        fault = {**chapter.fault, "seconds": chapter.seconds + AFTERWARDS_SECONDS}
        while not self._send_fault(chapter, fault):
            left = ends - self._clock()
            if left <= 0 or self._wait(min(LOOK_SECONDS, left)):
                return False
        return True

    def _watch(self, chapter: Chapter) -> None:
        ends = self._clock() + chapter.seconds
        while self._clock() < ends:
            if self._wait(min(LOOK_SECONDS, max(0.0, ends - self._clock()))):
                return
            if chapter.until_stopped and self.is_stopped():
                log.info("experiment:%s was stopped", world.RETRIEVAL)
                self._wait(AFTERWARDS_SECONDS)
                return

    def wait_until_unused(self) -> bool:
        """Wait until nobody has used the demo for a while; return False if the scenario must end.

        That is the case if no switch was engaged or ramping, and no fault was set, for
        `UNUSED_SECONDS`.
        """
        since, is_told = self._clock(), False
        while self._clock() - since < UNUSED_SECONDS:
            if self._wait(LOOK_SECONDS):
                return False
            if self._is_used():
                since = self._clock()
                if not is_told:
                    log.info("waiting until no switch is engaged or ramping, and no fault is set")
                is_told = True
        return True

    def _is_used(self) -> bool:
        """Return True if a switch is engaged or ramping, a fault is set, or a service is away."""
        try:
            if self._get("core", "/switches").get("engaged_or_ramping"):
                return True
            return any(self._get(name, "/faults") != asdict(WELL) for name in self._ports)
        except Unreachable:
            return True

    def _get(self, service: str, path: str) -> Mapping[str, Any]:
        return call(self._ports[service], path, {}, seconds=CALL_SECONDS, method="GET")[1]

    def is_stopped(self) -> bool:
        """Return True if the experiment's switch is engaged.

        That is the case if a member of the experiment gets an answer by the old retrieval.
        """
        question = {"user": MEMBER, "segment": "hr", "intent": world.NL2SQL}
        try:
            status, answer = call(self._ports["core"], "/ask", question, seconds=CALL_SECONDS)
        except Unreachable:
            return False
        return status == 200 and answer.get("retrieval") == "v1" and not answer.get("partial")

    def _send_fault(self, chapter: Chapter, fault: Mapping[str, Any]) -> bool:
        """Send a fault to the service; return True if it was accepted."""
        port = self._ports[chapter.service]
        try:
            status, answer = call(port, "/faults", fault, seconds=CALL_SECONDS)
        except Unreachable as error:  # The service is restarting; faults end by themselves.
            log.info("can't reach %s: %s", chapter.service, error)
            return False
        if status != 200:
            log.warning("%s rejected the fault: %s", chapter.service, answer.get("error", status))
        return status == 200


def parse_scenario(text: str) -> tuple[str, ...]:
    """Return the chapters named by `DEMO_SCENARIO`; raise :class:`ValueError` for a wrong name."""
    if text in ("", "auto"):
        return tuple(CHAPTERS)
    if text == "off":
        return ()
    if text not in CHAPTERS:
        raise ValueError(f"DEMO_SCENARIO: must be auto, off or one of {', '.join(CHAPTERS)}")
    return (text,)


def main() -> None:
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message)s")
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    names = parse_scenario(os.environ.get("DEMO_SCENARIO", ""))
    ports = {name: world.service_port(name) for name in world.SERVICES}
    player = Player(ports, ended.wait, os.environ.get("SWITCHGEAR_URL", ""))
    if not names:
        ended.wait()
    load.wait_for(ports.values(), ended.wait)
    has_all = len(names) > 1
    if has_all:
        log.info("the scenario begins after %.0f s in which you only watch", UNUSED_SECONDS)
    for name in cycle(names):
        if ended.is_set() or (has_all and not player.wait_until_unused()):
            break
        began = time.monotonic()
        player.play(CHAPTERS[name])
        pause = EVERY_SECONDS - (UNUSED_SECONDS if has_all else 0.0)
        ended.wait(max(0.0, began + pause - time.monotonic()))


if __name__ == "__main__":
    main()
