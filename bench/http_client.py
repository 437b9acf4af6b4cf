"""HTTP/1.1 for load clients: just enough to send requests and read whole responses."""

import re
from typing import NamedTuple

from .servers import HOST

SNAPSHOT = "/api/v1/snapshot"
STREAM = "/api/v1/snapshot/stream"
LENGTH = re.compile(rb"\ncontent-length: *(\d+)", re.IGNORECASE)
ETAG = re.compile(rb'\netag: *("[^"]+")', re.IGNORECASE)
VERSION = re.compile(rb"\nswitchgear-version: *(\d+)", re.IGNORECASE)
EVENT_ID = b"\nid: "
END_OF_EVENT = b"\n\n\r\n"
"""The end of an event and its chunk: the servers here send each event as one chunk."""


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
