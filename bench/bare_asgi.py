"""Minimal ASGI applications: `app` sends fixed responses, `holder` holds polls and streams open.

The benchmark compares the data plane with them. The environment variable `BENCH_ANSWERS` names a
JSON file of responses by path: `{"/304": [status, [[name, value]], body]}`. `POST /ring` to
`holder` publishes a next version of its snapshot and returns its number; each waiting client then
gets the response for `/200`.
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
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


def _messages(status: int, headers: list[list[str]], body: str) -> tuple[Message, Message]:
    pairs = [(name.encode(), value.encode()) for name, value in headers]
    return (
        {"type": "http.response.start", "status": status, "headers": pairs},
        {"type": "http.response.body", "body": body.encode()},
    )


ANSWERS = {
    path: _messages(*answer)
    for path, answer in json.loads(Path(os.environ["BENCH_ANSWERS"]).read_text()).items()
}


async def app(scope: Message, receive: Receive, send: Send) -> None:
    if scope["type"] != "http":
        return
    start, body = ANSWERS[scope["path"]]
    await send(start)
    await send(body)


EPOCH = str(uuid.uuid4())
BODY: bytes = ANSWERS["/200"][1]["body"]
LENGTH = str(len(BODY)).encode()


class PublishedVersion:
    """A version of the holder's snapshot; the event `over` is set when the next one replaces it."""

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


async def holder(scope: Message, receive: Receive, send: Send) -> None:
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
