"""A minimal HTTP/1.1 client for the benchmarks: single requests, and messages of load clients."""

import re
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPMessage
from typing import NamedTuple

from .servers import HOST

SNAPSHOT = "/api/v1/snapshot"
STREAM = "/api/v1/snapshot/stream"
RELAY_STREAM = "/api/v1/relay/stream"
LENGTH = re.compile(rb"\ncontent-length: *(\d+)", re.IGNORECASE)
ETAG = re.compile(rb'\netag: *("[^"]+")', re.IGNORECASE)
VERSION = re.compile(rb"\nswitchgear-version: *(\d+)", re.IGNORECASE)
EVENT_ID = b"\nid: "
END_OF_EVENT = b"\n\n\r\n"
"""The end of an event and its chunk: the servers here send each event as one chunk."""


class Fetched(NamedTuple):
    """The response to a single request."""

    status: int
    headers: HTTPMessage
    body: bytes


def fetch(
    port: int,
    path: str,
    headers: Mapping[str, str] | None = None,
    *,
    method: str = "GET",
    body: str | None = None,
    expected: int | None = 200,
) -> Fetched:
    """Send a request on a new connection; end the run if the status is not `expected`."""
    connection = HTTPConnection(HOST, port, timeout=20)
    connection.request(method, path, body, dict(headers or {}))
    response = connection.getresponse()
    found = Fetched(response.status, response.headers, response.read())
    connection.close()
    if expected not in (None, found.status):
        raise SystemExit(f"bench: {method} {path} was answered with {found.status}")
    return found


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


class HttpReply(NamedTuple):
    """A whole HTTP response."""

    status: int
    head: bytes
    body: bytes

    def etag(self) -> bytes:
        return _first(ETAG, self.head)

    def version(self) -> int:
        return int(_first(VERSION, self.head))


def get_request(path: str, token: str, *more: bytes) -> bytes:
    """Build a GET request with the token, as bytes; `more` are header lines without line ends."""
    lines = [
        f"GET {path} HTTP/1.1".encode(),
        f"Host: {HOST}".encode(),
        f"Authorization: Bearer {token}".encode(),
        *more,
    ]
    return b"\r\n".join([*lines, b"", b""])


def parse_reply(received: bytes) -> HttpReply | None:
    """Return the HTTP response in `received`, or None while it is incomplete."""
    end = received.find(b"\r\n\r\n")
    if end < 0:
        return None
    head = received[:end]
    status = int(head[9:12])
    found = LENGTH.search(head)
    length = int(found[1]) if found and status != 304 else 0
    if len(received) < end + 4 + length:
        return None
    return HttpReply(status, head, received[end + 4 :])


def event_versions(received: bytes) -> list[int]:
    """Return the snapshot versions of the server-sent events in `received`."""
    versions = []
    at = received.find(EVENT_ID)
    while at >= 0:
        end = received.index(b"\n", at + len(EVENT_ID))
        versions.append(int(received[at:end].rpartition(b".")[2]))
        at = received.find(EVENT_ID, end)
    return versions


def _first(pattern: re.Pattern[bytes], head: bytes) -> bytes:
    found = pattern.search(head)
    if found is None:
        raise SystemExit(f"bench: an answer without {pattern.pattern!r}: {head!r}")
    return found[1]
