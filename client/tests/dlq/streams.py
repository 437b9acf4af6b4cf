"""A stream for each test, on the suite's Redis."""

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import redis

URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")
GROUP = "synapse"


@dataclass
class Stream:
    """A stream and its dead letters, in bytes."""

    name: str
    redis: Any
    dead: str = field(init=False)

    def __post_init__(self) -> None:
        self.dead = self.name.replace("axiom:", "axiom:dlq:", 1)

    def add(self, **fields: Any) -> str:
        return str(self.redis.xadd(self.name, fields or {"a": "1"}).decode())

    def given_to(self, consumer: str, *, group: str = GROUP, count: int = 1) -> list[str]:
        """Let a consumer read messages and not finish them; return their ids."""
        if not any(existing["name"] == group.encode() for existing in self._groups()):
            self.redis.xgroup_create(self.name, group, "0", mkstream=True)
        [[_, entries]] = self.redis.execute_command(
            "XREADGROUP GROUP", group, consumer, "COUNT", count, "STREAMS", self.name, ">"
        )
        return [entry_id.decode() for entry_id, _ in entries]

    def idle(self, entry_id: str, consumer: str, *, deliveries: int = 1, ms: int = 600_000) -> None:
        """Make a message look delivered so often, and long ago."""
        self.redis.xclaim(
            *(self.name, GROUP, consumer, 0, [entry_id]),
            idle=ms,
            retrycount=deliveries,
            justid=True,
        )

    @property
    def pending(self) -> list[tuple[str, str, int]]:
        """Id, consumer and deliveries of pending messages."""
        rows = self.redis.xpending_range(self.name, GROUP, "-", "+", 100)
        return [
            (row["message_id"].decode(), row["consumer"].decode(), row["times_delivered"])
            for row in rows
        ]

    @property
    def letters(self) -> list[list[tuple[bytes, bytes]]]:
        """Names and values of every dead letter, in order."""
        entries = self.redis.eval("return redis.call('XRANGE', KEYS[1], '-', '+')", 1, self.dead)
        return [list(zip(flat[::2], flat[1::2], strict=True)) for _, flat in entries]

    @property
    def letter(self) -> dict[bytes, bytes]:
        """The only dead letter."""
        [only_letter] = self.letters
        return dict(only_letter)

    def _groups(self) -> list[Any]:
        return self.redis.xinfo_groups(self.name) if self.redis.exists(self.name) else []


@pytest.fixture
def stream() -> Iterator[Stream]:
    with redis.Redis.from_url(URL, protocol=2) as client:
        new_stream = Stream(f"axiom:client-{uuid.uuid4().hex}", client)
        yield new_stream
        client.delete(new_stream.name, new_stream.dead)
