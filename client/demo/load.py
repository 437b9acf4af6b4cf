"""Load generator of the demo: about twenty questions per second, with regular summaries."""

import logging
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from statistics import quantiles
from typing import Any

from demo import world
from demo.http_calls import Unreachable, call

RATE = 20.0
MAX_RATE = 100.0
AT_ONCE = 32
"""Limit of concurrent questions; beyond it, questions are skipped."""
PATIENCE_SECONDS = 10.0
SUMMARY_SECONDS = 10.0
NL2SQL_SHARE = 0.7

log = logging.getLogger("demo")


class VisitCounts:
    """Counts of visits by outcome since the last summary."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._outcomes: Counter[str] = Counter()
        self._switches: Counter[str] = Counter()
        self._took: list[float] = []

    def note(self, outcome: str, seconds: float, switch: str | None = None) -> None:
        """Count a visit with its `outcome`: answered, refused, failed or skipped.

        `seconds` is its duration, and `switch` the switch that refused it.
        """
        with self._lock:
            self._outcomes[outcome] += 1
            self._took.append(seconds)
            if switch:
                self._switches[switch] += 1

    def line(self) -> str:
        """Return a summary line of the visits since the last summary, and reset the counts."""
        with self._lock:
            outcomes, switches, took = self._outcomes, self._switches, self._took
            self._begin()
        by = ", ".join(f"{count} by {switch}" for switch, count in switches.most_common(3))
        refused = f"{outcomes['refused']} refused" + (f" ({by})" if by else "")
        p95 = quantiles(took, n=20)[18] * 1e3 if len(took) > 1 else 0.0
        skipped = f", {outcomes['skipped']} skipped" if outcomes["skipped"] else ""
        return (
            f"{outcomes['answered']} answered, {refused}, {outcomes['failed']} failed{skipped};"
            f" p95 {p95:.0f} ms"
        )


def make_question() -> dict[str, Any]:
    number = random.randrange(world.USERS)  # noqa: S311
    intent = world.NL2SQL if random.random() < NL2SQL_SHARE else world.ONTOLOGY  # noqa: S311
    segment = world.SEGMENTS[number % len(world.SEGMENTS)]
    return {"user": f"u{number:03}", "segment": segment, "intent": intent}


def visit_core(port: int, counts: VisitCounts) -> None:
    """Send one question to core and count its outcome."""
    began = time.monotonic()
    try:
        status, answer = call(port, "/ask", make_question(), seconds=PATIENCE_SECONDS)
    except Unreachable:
        status, answer = 0, {}
    switch = answer.get("switch") if status == 503 else None
    outcome = "answered" if status == 200 else "refused" if switch else "failed"
    counts.note(outcome, time.monotonic() - began, switch)


def parse_rate(text: str) -> float:
    """Parse `DEMO_RATE`, questions per second. Raise :class:`ValueError` if it is invalid."""
    try:
        rate = float(text or RATE)
    except ValueError:
        rate = 0.0
    if not 0 < rate <= MAX_RATE:
        raise ValueError(f"DEMO_RATE: must be more than 0, and at most {MAX_RATE:.0f}")
    return rate


def wait_for(ports: Iterable[int], wait: Callable[[float], bool]) -> None:
    """Wait until all services at `ports` respond, or until `wait` says to give up.

    `wait` sleeps for a number of seconds, and returns True to give up.
    """
    for port in ports:
        while True:
            try:
                call(port, "/faults", {}, seconds=1.0, method="GET")
                break
            except Unreachable:
                if wait(0.2):
                    return


def main() -> None:
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message)s")
    pause = 1 / parse_rate(os.environ.get("DEMO_RATE", ""))
    port, counts, ended = world.service_port("core"), VisitCounts(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    wait_for(map(world.service_port, world.SERVICES), ended.wait)
    free = threading.BoundedSemaphore(AT_ONCE)

    def ask() -> None:
        try:
            visit_core(port, counts)
        finally:
            free.release()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        due = logged_at = time.monotonic()
        while not ended.wait(max(0.0, due - time.monotonic())):
            due = max(due + pause, time.monotonic())
            if free.acquire(blocking=False):
                pool.submit(ask)
            else:
                counts.note("skipped", 0.0)
            if time.monotonic() - logged_at >= SUMMARY_SECONDS:
                logged_at = time.monotonic()
                log.info("%s", counts.line())
        pool.shutdown(wait=False, cancel_futures=True)
        os._exit(0)  # Threads that wait for a response would delay the exit.


if __name__ == "__main__":
    main()
