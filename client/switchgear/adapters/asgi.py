"""A middleware for ASGI applications, such as FastAPI's and Starlette's: what is done for a request
has no more time than its caller waits, and is not tried again if the caller does that.

    app.add_middleware(Incoming)
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from switchgear.adapters.late import BODY, CONTENT_TYPE, STATUS
from switchgear.patterns.propagation import incoming

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Incoming:
    """Around `app`. Answers 504 to what has no time left before it begins. It cuts nothing off:
    that is for deadlines and timeouts inside, which end no later than the caller waits."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = (
            (name.decode("latin-1"), each.decode("latin-1")) for name, each in scope["headers"]
        )
        brought = incoming(headers)
        if brought.is_over:
            await _refuse(send)
            return
        with brought:
            await self.app(scope, receive, send)


async def _refuse(send: Send) -> None:
    headers = [
        (b"content-type", CONTENT_TYPE.encode()),
        (b"content-length", str(len(BODY)).encode()),
    ]
    await send({"type": "http.response.start", "status": STATUS, "headers": headers})
    await send({"type": "http.response.body", "body": BODY})
