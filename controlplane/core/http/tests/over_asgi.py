"""Requests over ASGI, as the server makes them: bodies in pieces, answers in pieces."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from asgiref.testing import ApplicationCommunicator
from django.core.asgi import get_asgi_application


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    pieces: list[bytes]

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)


def ask(
    method: str, path: str, headers: dict[str, str], pieces: Sequence[bytes] = (b"",)
) -> Answer:
    """Send the body in `pieces`. For tests that are not in a transaction: threads are others."""
    return asyncio.run(_ask(method, path, headers, pieces))


async def _ask(method: str, path: str, headers: dict[str, str], pieces: Sequence[bytes]) -> Answer:
    sent = {"host": "testserver", **headers}
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [(name.encode(), text.encode()) for name, text in sent.items()],
        "client": ("127.0.0.1", 5000),
    }
    call = ApplicationCommunicator(get_asgi_application(), scope)
    for number, piece in enumerate(pieces, 1):
        more = number < len(pieces)
        await call.send_input({"type": "http.request", "body": piece, "more_body": more})
    start = await call.receive_output(5)
    received = []
    while True:
        message = await call.receive_output(5)
        received.append(message.get("body", b""))
        if not message.get("more_body"):
            break
    await call.wait(5)
    reply_headers = {name.decode().lower(): text.decode() for name, text in start["headers"]}
    return Answer(start["status"], reply_headers, [piece for piece in received if piece])
