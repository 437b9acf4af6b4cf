"""Reading of request bodies before Django, within limits of time, size and total memory."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from controlplane.core.errors import Busy, TooSlow

from .core.protocol import MAX_BODY_BYTES, too_large
from .dataplane.serving.call import READ_SECONDS, Receive, drain_body, incomplete_body

MAX_BYTES = 128 * 1024 * 1024
"""Memory for all bodies together, without the first 64 KiB of each, so that kills always fit."""


class Bodies:
    """The memory that request bodies occupy together, limited to `max_bytes`."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0

    @contextmanager
    def budget(self) -> Iterator["Budget"]:
        """Context manager: a budget for one request's body; its memory is released at the end."""
        budget = Budget(self)
        try:
            yield budget
        finally:
            self._bytes -= budget.counted

    def take(self, count: int) -> None:
        if self._bytes + count > self._max_bytes:
            message = "Too many large requests at the same time. Try again in a moment."
            raise Busy(message, retry_after=2)
        self._bytes += count


class Budget:
    """The share of one request's body in the limited memory: `counted` bytes."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self.counted = 0

    async def read(self, receive: Receive, limit: int) -> bytes:
        """Read the request's body; raise TooLarge, TooSlow, Busy, or DomainError if it is cut."""
        try:
            async with asyncio.timeout(READ_SECONDS):
                return await self._read(receive, limit)
        except TimeoutError:
            raise TooSlow(f"The body did not arrive within {READ_SECONDS:g} seconds.") from None

    async def _read(self, receive: Receive, limit: int) -> bytes:
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise incomplete_body()
            body += message.get("body", b"")
            if len(body) > limit:
                if message.get("more_body"):
                    await drain_body(receive)
                raise too_large(limit)
            counted = max(0, len(body) - MAX_BODY_BYTES)
            self._bodies.take(counted - self.counted)
            self.counted = counted
            if not message.get("more_body"):
                return bytes(body)
