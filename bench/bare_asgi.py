"""A minimal ASGI application that sends fixed responses: the yardstick for the data plane.

The environment variable `BENCH_ANSWERS` names a JSON file of responses by path: `{"/304": [status,
[[name, value]], body]}`.
"""

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

Message = dict[str, Any]


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


async def app(
    scope: Message,
    receive: Callable[[], Awaitable[Message]],
    send: Callable[[Message], Awaitable[None]],
) -> None:
    if scope["type"] != "http":
        return
    start, body = ANSWERS[scope["path"]]
    await send(start)
    await send(body)
