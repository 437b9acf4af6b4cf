"""Heaps of dead letters on the tests' Redis, under names that no other test has."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from breakers.dead_letters.letters.fingerprints import fingerprint_parts, significant_parts
from breakers.dead_letters.models import LetterStream
from breakers.dead_letters.monitoring import streams
from breakers.dead_letters.redis_servers import servers
from breakers.tests.fleet import NOW

Fields = dict[str, Any]


class Heap:
    """Streams of one test: `name("events")` is one of dead letters, of the origin `events`."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.redis = servers.get_server("default").client

    def name(self, of: str = "events") -> str:
        return f"{self.prefix}:dlq:{of}"

    def add(
        self, *, to: str = "events", id: str = "*", error: str = "timeout after 30 s", **fields: Any
    ) -> str:
        """A letter as a consumer sends it; returns its id."""
        sent: Fields = {"order": "17", "dlq_error": error, "dlq_error_type": "TimeoutError"}
        given = self.redis.xadd(self.name(to), {**sent, **fields}, id=id)
        return str(given.decode())

    def fill(self, count: int, *, to: str = "events", start: int = 1) -> list[str]:
        """Letters `start-0` up to so many, with little in them."""
        with self.redis.pipeline(transaction=False) as pipeline:
            for number in range(start, start + count):
                fields = {"order": number, "dlq_error": f"order {number} failed"}
                pipeline.xadd(self.name(to), fields, id=f"{number}-0")
            return [one.decode() for one in pipeline.execute()]

    def stream(self, of: str = "events") -> LetterStream:
        return streams.find_stream("default", self.name(of), NOW)


@contextmanager
def heap(settings: Any, **changed: Any) -> Iterator[Heap]:
    """Patterns that match only what this test adds; it is deleted in the end."""
    prefix = f"test-{uuid4().hex}"
    patterns = ((f"{prefix}:dlq:{{stream}}", f"{prefix}:{{stream}}"),)
    settings.DEAD_LETTERS = replace(settings.DEAD_LETTERS, patterns=patterns, **changed)
    given = Heap(prefix)
    try:
        yield given
    finally:
        for key in given.redis.scan_iter(f"*{prefix}*", count=1000):
            given.redis.delete(key)


def compute_fingerprint(error_type, error):
    return fingerprint_parts(*significant_parts(error_type, error))


def stream_path(letters, rest="messages/", of="events"):
    return f"/dlq/streams/{quote(letters.name(of), safe='')}/{rest}"


def list_letters(api, letters, **filters):
    """Return the first page of a stream's letters as the API lists them."""
    response = api.get(stream_path(letters), filters)
    assert response.status_code == 200, response.content
    return response.json()


def list_origin(letters, of="events"):
    """Return ids and fields of the messages in an origin stream."""
    entries = letters.redis.xrange(f"{letters.prefix}:{of}")
    return [
        (entry_id.decode(), {k.decode(): v.decode() for k, v in fields.items()})
        for entry_id, fields in entries
    ]
