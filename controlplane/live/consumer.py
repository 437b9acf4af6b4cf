"""Channels consumer of `/ws/live/`: authentication, subscriptions, and writing."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import orjson
import structlog
from channels.consumer import AsyncConsumer
from channels.exceptions import StopConsumer
from channels.routing import URLRouter
from django.conf import settings
from django.urls import path, re_path

from controlplane.core import problem
from controlplane.core.errors import (
    DomainError,
    Forbidden,
    InvalidInput,
    NotFound,
    Unauthenticated,
    Unavailable,
)
from controlplane.core.live.subscribers import (
    Subscriber,
    carries_token,
    is_own_page,
    session_key_of,
)
from controlplane.live import stream
from controlplane.live.hosts import require_allowed_host
from controlplane.live.hub import Hub
from controlplane.live.sockets import Socket

from .query_threads import DATABASE_ERRORS

MAX_MESSAGE_BYTES = 4096
SESSION_SECONDS = 3.0
NOT_TEXT, TOO_MANY, TOO_LARGE = 1003, 1008, 1009

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]

log = structlog.get_logger(__name__)


class LiveConsumer(AsyncConsumer):  # type: ignore[misc]
    """Handles one WebSocket connection, from its handshake to its close."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._socket: Socket | None = None
        self._writing: asyncio.Task[tuple[int, str]] | None = None

    async def __call__(self, scope: Any, receive: Receive, send: Any) -> None:
        try:
            await super().__call__(scope, partial(self._receive, receive), send)
        except asyncio.CancelledError:
            # An abandoned client doesn't read, so no close message can be sent.
            task = asyncio.current_task()
            if self._socket is None or not self._socket.stuck or task is None or task.uncancel():
                raise
        finally:
            if self._writing is not None:
                self._writing.cancel()
            if self._socket is not None:
                self._hub.sockets.remove(self._socket)

    async def _receive(self, receive: Receive) -> Message:
        """Return the client's next message, or a disconnect once the writer task has ended.

        The server can't close a socket while `receive` is pending, so `receive` is canceled first.
        """
        if self._writing is None:
            return await receive()
        incoming = asyncio.ensure_future(receive())
        try:
            await asyncio.wait({incoming, self._writing}, return_when=asyncio.FIRST_COMPLETED)
            return incoming.result() if incoming.done() else {"type": "websocket.disconnect"}
        finally:
            incoming.cancel()

    async def websocket_connect(self, _message: Message) -> None:
        try:
            socket = self._socket = self._hub.add(await self._authenticate())
        except DomainError as error:
            await self._refuse(error)
            raise StopConsumer from None
        socket.task = asyncio.current_task()
        client = self.scope.get("client")
        # The server passes the port as text.
        socket.connection = (client[0], int(client[1])) if client else None
        await self.send({"type": "websocket.accept"})
        self._writing = asyncio.create_task(
            socket.write(lambda text: self.send({"type": "websocket.send", "text": text}))
        )

    async def websocket_receive(self, message: Message) -> None:
        text, socket = message.get("text"), self._socket
        if socket is None or socket.ending is not None:
            return
        socket.messages += 1
        if not socket.message_limit.acquire(time.monotonic()):
            socket.end(TOO_MANY, "Too many messages. Send at most one per second.")
        elif text is None:
            socket.end(NOT_TEXT, "Messages must be JSON text.")
        elif len(text.encode()) > MAX_MESSAGE_BYTES:
            socket.end(TOO_LARGE, f"A message can have at most {MAX_MESSAGE_BYTES // 1024} KiB.")
        else:
            self._handle_message(socket, text)

    async def websocket_disconnect(self, _message: Message) -> None:
        """Handle the end of the socket; if the server ended it, send the close reason."""
        writing = self._writing
        if writing is not None and writing.done():
            error = writing.exception()
            if error is None:
                code, reason = writing.result()
                await self.send({"type": "websocket.close", "code": code, "reason": reason})
            else:
                log.debug("live.socket_lost", kind=type(error).__name__, error=str(error))
        raise StopConsumer

    async def _authenticate(self) -> Subscriber:
        """Return the subscriber: a program by its token, or a person by their session."""
        headers = dict(self.scope["headers"])
        if carries_token(headers):
            return self._hub.process.authenticate_token(headers)
        require_allowed_host(headers)
        key = session_key_of(headers, settings.SESSION_COOKIE_NAME)
        if key is None:
            raise Unauthenticated("Sign in first, or send `Authorization: Bearer sg_…`.")
        origins = settings.CSRF_TRUSTED_ORIGINS
        if not is_own_page(headers, origins, https_only=bool(settings.SESSION_COOKIE_SECURE)):
            raise Forbidden(
                "Only pages of this console, or clients with a token, can open a WebSocket."
            )
        if not self._hub.process.database_reachable():
            raise Unavailable("Sessions can't be checked: the database does not respond.")
        try:
            find = partial(self._hub.process.find_session, key)
            return await self._hub.handshake_pool.run(find, SESSION_SECONDS)
        except DATABASE_ERRORS as error:
            detail = "Sessions can't be checked: the database does not respond."
            raise Unavailable(detail) from error

    async def _refuse(self, error: DomainError) -> None:
        """Reject the handshake, with a problem+json response if the server supports that."""
        if "websocket.http.response" not in (self.scope.get("extensions") or {}):
            await self.send({"type": "websocket.close"})
            return
        headers = {"Content-Type": problem.MEDIA_TYPE, **problem.problem_headers(error)}
        encoded = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        kind, body = "websocket.http.response", orjson.dumps(problem.problem_document(error))
        await self.send({"type": f"{kind}.start", "status": error.status, "headers": encoded})
        await self.send({"type": f"{kind}.body", "body": body})

    def _handle_message(self, socket: Socket, text: str) -> None:
        try:
            message = orjson.loads(text)
        except orjson.JSONDecodeError:
            socket.end(NOT_TEXT, "Messages must be JSON.")
            return
        try:
            socket.subscribe(_read_topics(message, socket.subscriber))
        except DomainError as error:
            socket.send(stream.build_refusal(error.detail))


class UnknownPathConsumer(AsyncConsumer):  # type: ignore[misc]
    """Consumer that closes sockets opened on an unknown path."""

    async def websocket_connect(self, _message: Message) -> None:
        await self.send({"type": "websocket.close"})
        raise StopConsumer


def build_application(hub: Hub) -> Any:
    routes = [
        path("ws/live/", LiveConsumer.as_asgi(hub=hub)),
        path("ws/live", LiveConsumer.as_asgi(hub=hub)),
        re_path("", UnknownPathConsumer.as_asgi()),
    ]
    return URLRouter(routes)


def _read_topics(message: Any, subscriber: Subscriber) -> frozenset[str]:
    """Return the topics to which a client's message subscribes; raise for unknown ones."""
    names = message.get("subscribe") if isinstance(message, dict) else None
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise InvalidInput({"subscribe": ['send {"subscribe": ["switches"]}.']})
    refused = sorted(set(names) - subscriber.topics)
    if refused:
        allowed = ", ".join(sorted(subscriber.topics))
        raise NotFound(
            f"You have no permission for {', '.join(refused)}. Allowed topics: {allowed}."
        )
    return frozenset(names)
