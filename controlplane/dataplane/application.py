"""The ASGI callable of the data plane: routing, credentials, and one answer per request.

No middleware and no I/O stand between a request and its answer, and the way through is short on
purpose: a few microseconds more here are a fifth of the whole request. Embedded, everything else
goes to the application behind; so do the data plane's own paths when a signed-in browser asks,
because only Django knows sessions.
"""

import asyncio
import contextlib
import itertools
import re
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple

from controlplane.core.errors import DomainError, NotFound
from controlplane.core.wire import LARGEST_BODY, REQUEST_ID, too_large
from controlplane.dataplane import answers, config
from controlplane.dataplane.answers import Answer
from controlplane.dataplane.credentials import Headers, authenticate, presented
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.state import State
from controlplane.environment import WrongVariable

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApplication = Callable[[Scope, Receive, Send], Awaitable[None]]

DRAIN_BYTES = 1024 * 1024
DRAIN_SECONDS = 1.0
SANE_REQUEST_ID = re.compile(REQUEST_ID.pattern.encode())
PROCESS = secrets.token_hex(6).encode()
_numbers = itertools.count(1)


class Route(NamedTuple):
    """Who answers a path, from state, headers and body; `scope` is what a token must allow."""

    methods: tuple[str, ...]
    respond: Callable[[State, Headers, bytes], Answer]
    scope: str | None = None
    reads_body: bool = False


_READING = ("GET", "HEAD")
_CHECK = Route(("POST",), answers.check, "switches:read", reads_body=True)
ROUTES = {
    "/api/v1/snapshot": Route(_READING, answers.snapshot, "switches:read"),
    "/api/v1/check": _CHECK,
    "/api/v1/check/": _CHECK,
    "/health/live": Route(_READING, answers.live),
    "/health/ready/data": Route(_READING, answers.ready),
}


def owns(path: str) -> bool:
    """True for the paths answered here, in either form."""
    return path in ROUTES or path.removesuffix("/") in ROUTES


class Application:
    """Serves a plane; `behind` is the application that gets everything else, if there is one."""

    def __init__(self, plane: Plane, behind: ASGIApplication | None = None) -> None:
        self._plane = plane
        self._state = plane.state
        self._behind = behind

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = ROUTES.get(scope.get("path", ""))
        if route is None or scope["type"] != "http":
            await self._other(scope, receive, send)
            return
        headers = dict(scope["headers"])
        if b"cookie" in headers and self._behind and route.scope and presented(headers) is None:
            # A browser, which may be signed in; only Django can tell.
            await self._behind(scope, receive, send)
            return
        try:
            body = await _read(receive) if route.reads_body else b""
            answer = self._answer(route, scope["method"], headers, body)
        except DomainError as error:
            answer = answers.refusal(error)
        except Exception:
            await send_answer(send, scope, headers, answers.broken())
            raise
        await send_answer(send, scope, headers, answer)

    def _answer(self, route: Route, method: str, headers: Headers, body: bytes) -> Answer:
        if method not in route.methods:
            return answers.wrong_method(method, route.methods)
        if route.scope:
            used = authenticate(self._state.tokens, headers, route.scope)
            self._state.used_tokens.add(used.token_id)
        return route.respond(self._state, headers, body)

    async def _other(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What is not a request for one of the paths, letter by letter."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http" and owns(scope["path"]):
            answer = answers.moved(scope["path"].removesuffix("/"), scope["query_string"])
            await send_answer(send, scope, dict(scope["headers"]), answer)
        elif self._behind:
            await self._behind(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close"})
        else:
            error = NotFound("The data plane alone serves " + ", ".join(ROUTES) + ".")
            await send_answer(send, scope, dict(scope["headers"]), answers.refusal(error))

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self._plane.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return
            try:
                await self._plane.start(config.from_environment())
            except WrongVariable as error:
                await send({"type": "lifespan.startup.failed", "message": str(error)})
                return
            await send({"type": "lifespan.startup.complete"})


async def send_answer(send: Send, scope: Scope, headers: Headers, answer: Answer) -> None:
    """Answer the request of `scope`, whose headers these are, under its request id."""
    status, said, body = answer
    said.append((b"x-request-id", _request_id(headers)))
    await send({"type": "http.response.start", "status": status, "headers": said})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


def _request_id(headers: Headers) -> bytes:
    """The caller's own if it is sane, else one that is cheap and unique."""
    given = headers.get(b"x-request-id")
    if given is not None and SANE_REQUEST_ID.fullmatch(given):
        return given
    return b"%s-%x" % (PROCESS, next(_numbers))


async def _read(receive: Receive) -> bytes:
    """The whole body, or the first part of one that is too large; raises :class:`TooLarge`."""
    body = b""
    while True:
        message = await receive()
        body += bytes(message.get("body", b""))
        if len(body) > LARGEST_BODY:
            break
        if not message.get("more_body"):
            return body
    if message.get("more_body"):
        await drain(receive)
    raise too_large()


async def drain(receive: Receive) -> None:
    """Let the caller finish sending, within reason: one that still sends may miss the answer."""
    drained = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            while drained < DRAIN_BYTES:
                message = await receive()
                drained += len(message.get("body", b""))
                if not message.get("more_body"):
                    return
