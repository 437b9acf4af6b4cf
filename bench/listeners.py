"""Clients that wait for changes, thousands in one thread: polls, event streams or WebSockets.

Run as a process of its own: `python -m bench.listeners KIND PORT TOKEN COUNT`; see `KINDS`. Once
all clients have received a version, prints a JSON line `{"version": 7, "moments": […], "bytes":
90}`: for each client the monotonic time, in ns, at which it had the version, and the bytes of the
last read of all clients. Ends when its standard input is closed.
"""

import json
import re
import select
import socket
import sys
import time
from collections import defaultdict
from functools import partial

from . import http_client, websocket_client
from .servers import HOST

WAIT_SECONDS = 60
RECEIVED_AT_ONCE = 256 * 1024


class Poll:
    """A client that polls `path`, acknowledges each version, and polls again without pause."""

    def __init__(
        self, connection: socket.socket, token: str, number: int, path: str = http_client.SNAPSHOT
    ) -> None:
        self._path = path
        self._connection = connection
        self._token = token
        self._name = b"Switchgear-Instance: bench/%d" % number
        self._received = b""
        connection.send(http_client.get_request(http_client.SNAPSHOT, token, self._name))

    def take(self, data: bytes) -> list[int]:
        """Process received bytes; return the snapshot versions received completely with them."""
        self._received += data
        answer = http_client.parse_reply(self._received)
        if answer is None:
            return []
        if answer.status not in {200, 304}:
            raise SystemExit(f"bench: a poll was answered with {answer.head!r}")
        self._received = b""
        etag = answer.etag()
        more = [self._name, b"If-None-Match: " + etag, b"Switchgear-Applied: " + etag.strip(b'"')]
        self._connection.send(http_client.get_request(self._path, self._token, *more))
        return [answer.version()] if answer.status == 200 else []


class EventStream:
    """A client that receives server-sent events."""

    path = http_client.STREAM

    def __init__(self, connection: socket.socket, token: str, number: int) -> None:
        self._received = b""
        name = b"Switchgear-Instance: bench/%d" % number
        connection.send(
            http_client.get_request(self.path, token, b"Accept: text/event-stream", name)
        )

    def take(self, data: bytes) -> list[int]:
        """Process received bytes; return the snapshot versions received completely with them."""
        if self._received:
            data = self._received + data
        if not data.endswith(http_client.END_OF_EVENT):
            self._received = data
            return []
        self._received = b""
        return http_client.event_versions(data)


CHUNK_SIZE = re.compile(rb"\r\n[0-9a-fA-F]+\r\n")
"""Matches what separates two chunks of HTTP's chunked encoding."""
MANIFEST_VERSION = re.compile(rb'\\"version\\":([0-9]+)')


class OrderStream(EventStream):
    """A client that receives server-sent events, and counts the emergency orders in each."""

    def take(self, data: bytes) -> list[int]:
        """Process received bytes; return the number of open emergency orders in the last event."""
        self._received += data
        if not self._received.endswith(http_client.END_OF_EVENT):
            return []
        # A large event has several chunks: their sizes may stand within what is counted.
        content = CHUNK_SIZE.sub(b"", self._received)
        event = content[content.rfind(http_client.EVENT_ID) :]
        self._received = b""
        return [event.count(b'"emergency":"')]


class RelayStream(EventStream):
    """A relay's stream: it receives bundles, orders and confirmations."""

    path = http_client.RELAY_STREAM

    def take(self, data: bytes) -> list[int]:
        """Process received bytes; return the snapshot versions of the bundles among them."""
        self._received += data
        if not self._received.endswith(http_client.END_OF_EVENT):
            return []
        _, *bundles = self._received.split(b"event: bundle\n")
        self._received = b""
        # The manifest is the first member of the data.
        return [int(found[1]) for each in bundles if (found := MANIFEST_VERSION.search(each))]


KINDS = {
    "polls": Poll,
    "held": partial(Poll, path=f"{http_client.SNAPSHOT}?wait={WAIT_SECONDS}"),
    "streams": EventStream,
    "orders": OrderStream,
    "relays": RelayStream,
    "sockets": websocket_client.WebSocket,
}


def main(kind: str, port: int, token: str, count: int) -> None:
    poller = select.epoll()
    poller.register(sys.stdin, select.EPOLLIN | select.EPOLLHUP)
    crowd: dict[int, tuple[socket.socket, Poll | EventStream | websocket_client.WebSocket]] = {}
    for number in range(count):
        connection = socket.create_connection((HOST, port), timeout=10)
        crowd[connection.fileno()] = connection, KINDS[kind](connection, token, number)
        connection.setblocking(False)
        poller.register(connection, select.EPOLLIN)
    buffer = memoryview(bytearray(RECEIVED_AT_ONCE))
    moments: dict[int, list[int]] = defaultdict(list)
    sizes: dict[int, int] = defaultdict(int)
    while True:
        for number, _ in poller.poll():
            if number == sys.stdin.fileno():
                return
            connection, client = crowd[number]
            size = connection.recv_into(buffer)
            now = time.monotonic_ns()
            if not size:
                raise SystemExit(f"bench: the server has closed one of {count} ({kind})")
            for version in client.take(bytes(buffer[:size])):
                moments[version].append(now)
                sizes[version] += size
                if len(moments[version]) == count:
                    line = {"moments": moments[version], "bytes": sizes[version]}
                    print(json.dumps({"version": version, **line}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
