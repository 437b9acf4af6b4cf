"""Just enough HTTP/1.1 for load clients: requests out, whole answers in."""

import re
from typing import NamedTuple

from bench.servers import HOST

SNAPSHOT = "/api/v1/snapshot"
STREAM = "/api/v1/snapshot/stream"
LENGTH = re.compile(rb"\ncontent-length: *(\d+)", re.IGNORECASE)
ETAG = re.compile(rb'\netag: *("[^"]+")', re.IGNORECASE)
VERSION = re.compile(rb"\nswitchgear-version: *(\d+)", re.IGNORECASE)
EVENT_ID = b"\nid: "
END_OF_EVENT = b"\n\n\r\n"
"""An event's end and its chunk's: the servers here send each event as one chunk."""


class Reply(NamedTuple):
    """One whole answer."""

    status: int
    head: bytes
    body: bytes

    def etag(self) -> bytes:
        return _first(ETAG, self.head)

    def version(self) -> int:
        return int(_first(VERSION, self.head))


def request(path: str, token: str, *more: bytes) -> bytes:
    """A GET with the token; `more` are whole header lines without their ends."""
    lines = [
        f"GET {path} HTTP/1.1".encode(),
        f"Host: {HOST}".encode(),
        f"Authorization: Bearer {token}".encode(),
        *more,
    ]
    return b"\r\n".join([*lines, b"", b""])


def reply(received: bytes) -> Reply | None:
    """The answer that `received` is, or None while it is not whole yet."""
    end = received.find(b"\r\n\r\n")
    if end < 0:
        return None
    head = received[:end]
    status = int(head[9:12])
    found = LENGTH.search(head)
    length = int(found[1]) if found and status != 304 else 0
    if len(received) < end + 4 + length:
        return None
    return Reply(status, head, received[end + 4 :])


def event_versions(received: bytes) -> list[int]:
    """The versions of the events in it. Document and chunk sizes have no line that begins so."""
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
