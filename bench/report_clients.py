"""A fleet of instances that report their breakers every few seconds, each on its own connection.

Run as a process of its own: `python -m bench.report_clients PORT TOKEN COUNT BREAKERS EVERY SECONDS
QUIET`. In phase one, for `SECONDS`, all counters grow with each report, and one report in a hundred
has a breaker that opened or closed. In phase two, for `QUIET` seconds, nothing changes.

Prints a JSON line at the start of each phase, and at the end a line with the results: `delays_ms`
from each report's scheduled time to its response in phase one, `lost` reports by reason, the number
`quiet` of reports in phase two, and `late_ms`, this process's longest delay.
"""

import json
import random
import select
import socket
import sys
import time
import uuid
from collections import Counter
from datetime import UTC, datetime
from heapq import heapify, heappop, heappush

from . import http_client
from .servers import HOST

PATH = "/api/v1/report"
PATIENCE_SECONDS = 10.0
RECEIVED_AT_ONCE = 64 * 1024
SETTLE_SECONDS = 12.0
"""After this time earlier writes have been counted."""
CHANGES = 0.01
CALLS = 50
"""Calls of each breaker between two reports."""


class ReportingInstance:
    """A simulated instance of a service, with the counters of its breakers."""

    def __init__(self, number: int, breakers: int) -> None:
        self.name = f"i{number:04}"
        self.service = f"bench-{number % 10}"
        self.connection: socket.socket | None = None
        self.due = 0.0
        self.is_waiting = False
        self.received = b""
        self._boot = str(uuid.uuid4())
        self._started_at = _now()
        self._seq = 0
        self._steps = 0
        self._breakers = [self._breaker(f"{self.service}->d{n:02}") for n in range(breakers)]

    def report(self, at_work: bool) -> bytes:
        """Return the body of the next report.

        With `at_work` its counters have grown, and a breaker may have changed its state.
        """
        self._seq += 1
        if at_work:
            self._go_on()
        fields = {
            "service": self.service,
            "instance": self.name,
            "boot": self._boot,
            "started_at": self._started_at,
            "sent_at": _now(),
            "seq": self._seq,
            "applied_version": 1,
            "config_version": 0,
            "breakers": self._breakers,
            "bulkheads": [{"name": "llm", "in_flight": 3, "limit": 50, "queued": 0}],
        }
        return json.dumps(fields).encode()

    def _go_on(self) -> None:
        for breaker in self._breakers:
            breaker["counters"]["success"] += CALLS
            breaker["transitions"] = []
        if random.random() < CHANGES:
            breaker = random.choice(self._breakers)
            was, now = breaker["state"], "open" if breaker["state"] == "closed" else "closed"
            self._steps += 1
            breaker |= {"state": now, "since": _now()}
            step = {"n": self._steps, "from": was, "to": now, "at": breaker["since"]}
            breaker["transitions"] = [{**step, "cause": "failure_rate 0.60 >= 0.50"}]

    def _breaker(self, name: str) -> dict:
        names = ("success", "failure", "timeout", "slow", "rejected", "fallback", "retry")
        return {
            "dependency": name,
            "state": "closed",
            "mode": "normal",
            "since": self._started_at,
            "failure_rate": 0.02,
            "slow_rate": 0.0,
            "calls": 100,
            "counters": dict.fromkeys(names, 0),
        }


class ReportingFleet:
    """All simulated instances, in one thread with one epoll."""

    def __init__(
        self, port: int, token: str, instances: list[ReportingInstance], every: float
    ) -> None:
        self.delays_ms: list[float] = []
        self.lost: Counter[str] = Counter()
        self.late_ms = 0.0
        self.at_work = True
        self.quiet = 0
        self._every = every
        self._head = (
            f"POST {PATH} HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        )
        self._address = (HOST, port)
        self._instances = instances
        self._poller = select.epoll()
        self._open: dict[int, ReportingInstance] = {}
        self._coming: list[tuple[float, int, ReportingInstance]] = []
        self.begin()

    def begin(self) -> None:
        """Reconnect all instances, and spread their reports evenly over each interval.

        Reconnecting is needed between the phases: the server closes connections idle for 20 s.
        """
        for instance in self._instances:
            if instance.connection is not None:
                self._poller.unregister(instance.connection)
                instance.connection.close()
            instance.connection = socket.create_connection(self._address, timeout=10)
            self._poller.register(instance.connection, select.EPOLLIN)
        self._open = {one.connection.fileno(): one for one in self._instances}
        began, step = time.monotonic() + 0.5, self._every / len(self._instances)
        self._coming = [(began + n * step, n, one) for n, one in enumerate(self._instances)]
        heapify(self._coming)

    def run(self, until: float) -> None:
        """Send the reports that become due before the monotonic time `until`."""
        while (now := time.monotonic()) < until:
            while self._coming and self._coming[0][0] <= now:
                due, number, instance = heappop(self._coming)
                self._send(instance, due)
                heappush(self._coming, (due + self._every, number, instance))
            rest = min(self._coming[0][0], until) - time.monotonic()
            self._read(max(0.0, rest))

    def end(self) -> None:
        """Wait for outstanding responses; count those that do not come in time as lost."""
        ends = time.monotonic() + PATIENCE_SECONDS
        while any(one.is_waiting for one in self._open.values()) and time.monotonic() < ends:
            self._read(0.1)
        self.lost["no answer"] += sum(one.is_waiting for one in self._open.values())

    def _send(self, instance: ReportingInstance, due: float) -> None:
        if instance.is_waiting:
            self.lost["still waiting"] += 1
            return
        body = instance.report(self.at_work)
        instance.due, instance.is_waiting, instance.received = due, True, b""
        instance.connection.sendall((self._head % len(body)).encode() + body)
        self.late_ms = max(self.late_ms, (time.monotonic() - due) * 1e3)

    def _read(self, seconds: float) -> None:
        for descriptor, _ in self._poller.poll(seconds):
            instance = self._open[descriptor]
            data = instance.connection.recv(RECEIVED_AT_ONCE)
            if not data:
                raise SystemExit("bench: the server has closed a reporter's connection")
            instance.received += data
            answer = http_client.parse_reply(instance.received)
            if answer is not None and instance.is_waiting:
                instance.is_waiting = False
                if answer.status != 200:
                    self.lost[f"status {answer.status}"] += 1
                elif not self.at_work:
                    self.quiet += 1
                else:
                    self.delays_ms.append((time.monotonic() - instance.due) * 1e3)


def main(
    port: int, token: str, count: int, breakers: int, every: float, seconds: float, quiet: float
) -> None:
    fleet = ReportingFleet(
        port, token, [ReportingInstance(n, breakers) for n in range(count)], every
    )
    fleet.run(time.monotonic() + every + 1)  # First reports insert rows.
    fleet.delays_ms.clear()
    print(json.dumps({"begun": "work"}), flush=True)
    fleet.run(time.monotonic() + seconds)
    fleet.at_work = False
    fleet.run(time.monotonic() + every)  # Report the last changes.
    fleet.end()
    print(json.dumps({"begun": "quiet"}), flush=True)
    time.sleep(SETTLE_SECONDS + 3)
    fleet.begin()
    fleet.quiet = 0
    fleet.run(time.monotonic() + quiet)
    fleet.end()
    found = {
        "delays_ms": fleet.delays_ms,
        "lost": +fleet.lost,
        "late_ms": fleet.late_ms,
        "quiet": fleet.quiet,
    }
    print(json.dumps(found), flush=True)
    sys.stdin.read()


def _now() -> str:
    return datetime.now(UTC).isoformat()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:5]), *map(float, sys.argv[5:8]))
