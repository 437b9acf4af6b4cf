"""A minimal ASGI application with held polls and streams: the yardstick for fan-out.

`BENCH_ANSWERS` is as for `bench.bare_asgi`. Each client gets the response for `/200` with each new
version. `POST /ring` publishes the next version, and returns its number.
"""

import asyncio
import itertools
import json
import os
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

Message = dict[str, Any]
Send = Callable[[Message], Awaitable[None]]

EPOCH = str(uuid.uuid4())
BODY = json.loads(Path(os.environ["BENCH_ANSWERS"]).read_text())["/200"][2].encode()
LENGTH = str(len(BODY)).encode()


class PublishedVersion:
    """A version with its prepared response; `over` is set when the next version replaces it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.etag = f'"{EPOCH}.{number}"'.encode()
        self.headers = [
            (b"content-type", b"application/json"),
            (b"content-length", LENGTH),
            (b"etag", self.etag),
            (b"switchgear-version", str(number).encode()),
        ]
        self.event = b"id: %b.%d\nevent: snapshot\ndata: %b\n\n" % (EPOCH.encode(), number, BODY)
        self.over = asyncio.Event()


numbers = itertools.count(1)
present: PublishedVersion | None = None


async def app(scope: Message, receive: Callable[[], Awaitable[Message]], send: Send) -> None:
    global present
    if scope["type"] != "http":
        return
    if present is None:
        present = PublishedVersion(next(numbers))
    if scope["path"] == "/ring":
        before, present = present, PublishedVersion(next(numbers))
        before.over.set()
        await _answer(send, [], str(present.number).encode())
    elif scope["path"].endswith("/stream"):
        await _stream(send)
    else:
        if dict(scope["headers"]).get(b"if-none-match") == present.etag:
            await present.over.wait()
        await _answer(send, present.headers, BODY)


async def _stream(send: Send) -> None:
    assert present is not None
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    while True:
        sent = present
        await send({"type": "http.response.body", "body": sent.event, "more_body": True})
        await sent.over.wait()


async def _answer(send: Send, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
