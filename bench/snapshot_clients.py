"""Thousands of new clients; each connects, fetches the whole snapshot, and disconnects.

Run as a process of its own: `python -m bench.snapshot_clients PORT TOKEN COUNT SECONDS SWITCHES`.
Clients start evenly over `SECONDS`, with jitter; every other client also polls once for a 304.
Prints one JSON line: `delays_ms` from scheduled start to whole snapshot, `lost` clients by reason,
`late_ms`, the longest delay of this process, and its `seconds` and `cpu_seconds`.
"""

import json
import random
import select
import socket
import sys
import time
from collections import Counter, deque

from . import http_client
from .servers import HOST

PATIENCE_SECONDS = 10.0
RECEIVED_AT_ONCE = 256 * 1024


class NewClient:
    """A client to start at the time `due`; with `again` it polls once more after the snapshot."""

    def __init__(self, due: float, again: bool) -> None:
        self.connection = socket.socket()
        self.connection.setblocking(False)
        self.due = due
        self.again = again
        self.is_sent = False
        self.received = b""
        self.took_ms: float | None = None


class Arrivals:
    """The load generator: runs all clients in one thread with one epoll."""

    def __init__(self, port: int, token: str, switches: int) -> None:
        self.delays_ms: list[float] = []
        self.lost: Counter[str] = Counter()
        self.late_ms = 0.0
        self._port, self._token, self._switches = port, token, switches
        self._asking = http_client.get_request(http_client.SNAPSHOT, token)
        self._poller = select.epoll()
        self._open: dict[int, NewClient] = {}
        self._buffer = memoryview(bytearray(RECEIVED_AT_ONCE))

    def run(self, schedule: list[float]) -> None:
        """Start a client at each monotonic time in `schedule`, and serve all until they end."""
        coming = deque(enumerate(schedule))
        while coming or self._open:
            now = time.monotonic()
            while coming and coming[0][1] <= now:
                number, due = coming.popleft()
                self.late_ms = max(self.late_ms, (now - due) * 1e3)
                self._connect(NewClient(due, again=number % 2 == 1))
            rest = coming[0][1] - now if coming else 0.1
            for descriptor, _ in self._poller.poll(max(0.0, rest)):
                self._go_on(self._open[descriptor])
            if now > schedule[-1] + PATIENCE_SECONDS:
                for newcomer in list(self._open.values()):
                    self._end(newcomer, "no answer")

    def _connect(self, newcomer: NewClient) -> None:
        newcomer.connection.connect_ex((HOST, self._port))
        self._poller.register(newcomer.connection, select.EPOLLOUT)
        self._open[newcomer.connection.fileno()] = newcomer

    def _go_on(self, newcomer: NewClient) -> None:
        try:
            if not newcomer.is_sent:
                newcomer.connection.send(self._asking)
                newcomer.is_sent = True
                self._poller.modify(newcomer.connection, select.EPOLLIN)
                return
            size = newcomer.connection.recv_into(self._buffer)
        except OSError as error:
            self._end(newcomer, type(error).__name__)
            return
        if not size:
            self._end(newcomer, "closed")
            return
        newcomer.received += self._buffer[:size]
        answer = http_client.parse_reply(newcomer.received)
        if answer is not None:
            newcomer.received = b""
            self._answered(newcomer, answer)

    def _answered(self, newcomer: NewClient, answer: http_client.HttpReply) -> None:
        if newcomer.took_ms is not None:
            self._end(newcomer, "" if answer.status == 304 else f"status {answer.status}, not 304")
        elif answer.status != 200:
            self._end(newcomer, f"status {answer.status}")
        elif answer.body.count(b'"salt"') != self._switches:
            self._end(newcomer, "not the whole snapshot")
        else:
            newcomer.took_ms = (time.monotonic() - newcomer.due) * 1e3
            if newcomer.again:
                known = b"If-None-Match: " + answer.etag()
                newcomer.connection.send(
                    http_client.get_request(http_client.SNAPSHOT, self._token, known)
                )
            else:
                self._end(newcomer, "")

    def _end(self, newcomer: NewClient, lost: str) -> None:
        del self._open[newcomer.connection.fileno()]
        newcomer.connection.close()
        if lost or newcomer.took_ms is None:
            self.lost[lost] += 1
        else:
            self.delays_ms.append(newcomer.took_ms)


def main(port: int, token: str, count: int, seconds: float, switches: int) -> None:
    arrivals = Arrivals(port, token, switches)
    began = time.monotonic() + 0.1
    step = seconds / count
    arrivals.run(sorted(began + step * (n + random.random()) for n in range(count)))
    found = {
        "delays_ms": arrivals.delays_ms,
        "lost": arrivals.lost,
        "late_ms": arrivals.late_ms,
        "seconds": time.monotonic() - began,
        "cpu_seconds": time.process_time(),
    }
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5]))
