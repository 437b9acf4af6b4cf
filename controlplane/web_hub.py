"""The web process's data plane, together with the hub that serves its live WebSockets."""

import asyncio
import signal
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import structlog

from controlplane.core.errors import DomainError
from controlplane.dataplane.config import Config, RelayConfig
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.state import State
from controlplane.live.hub import Hub

from .accounts.authentication import socket_sessions as sessions
from .core.degradation_levels import build_document
from .core.live import topics
from .core.live.subscribers import Headers, Subscriber
from .dataplane.memory.credentials import authenticate

GOODBYE_SECONDS = 1.5
"""Longest wait for sockets to close, within the server's `asgi_server.GRACE_SECONDS`."""
POLL_SECONDS = 0.02
CREDENTIALS = (b"authorization", b"x-api-key")


log = structlog.get_logger(__name__)


class WebProcessState:
    """Gives the hub of WebSockets what it needs to know from the data plane of this process."""

    def __init__(self, state: State) -> None:
        self._state = state

    def database_reachable(self) -> bool:
        return self._state.database_reachable

    def wall(self) -> datetime:
        return self._state.wall()

    def degradation(self, *, is_subscribed: bool) -> Mapping[str, Any]:
        state = self._state
        return build_document(
            state.database_reachable, state.redis_reachable and is_subscribed, state.known_causes()
        )

    def authenticate_token(self, headers: Headers) -> Subscriber:
        """Return the subscriber whose token is in `headers`; raise DomainError if not allowed."""
        state = self._state
        scopes = {scope for topic in topics.list_topics() for scope in topic.scopes}
        token = authenticate(state.tokens, headers, *sorted(scopes), clock=state.unix)
        state.used_tokens.add(token.token_id)
        credentials = {name: headers[name] for name in CREDENTIALS if name in headers}
        allowed = topics.find_allowed_topics(token.scopes)
        return Subscriber(name=f"token:{token.token_id}", topics=allowed, headers=credentials)

    def is_token_valid(self, subscriber: Subscriber) -> bool:
        try:
            return self.authenticate_token(subscriber.headers).topics >= subscriber.topics
        except DomainError:
            return False

    find_session = staticmethod(sessions.find_session)
    find_ended_sessions = staticmethod(sessions.find_ended_sessions)


class WebPlane(Plane):
    """The data plane of a web process, which also starts and stops the hub of its WebSockets."""

    def __init__(self) -> None:
        super().__init__()
        self.emergency_page.default_console_url = "/"
        self.hub = Hub(WebProcessState(self.state))
        self._goodbye: asyncio.Task[None] | None = None

    async def start(self, config: Config | RelayConfig) -> None:
        await super().start(config)
        if threading.current_thread() is threading.main_thread():
            self._intercept_signals()
        if isinstance(config, Config):  # A web process has a database and Redis.
            self.hub.start(config.redis_url)

    async def stop(self) -> None:
        await self.hub.stop()
        await super().stop()

    def _intercept_signals(self) -> None:
        """Close sockets with a close frame on SIGTERM and SIGINT, then run the server's handler."""
        loop = asyncio.get_running_loop()
        handlers: Mapping[int, asyncio.Handle] = getattr(loop, "_signal_handlers", {})
        for number in (signal.SIGTERM, signal.SIGINT):
            servers = handlers.get(number)
            if servers is not None:
                others = signal.getsignal(number)  # Handlers that are still called, at once.
                loop.add_signal_handler(number, self._start_goodbye, servers._run)
                signal.signal(number, others)

    def _start_goodbye(self, finish: Callable[[], None]) -> None:
        if self._goodbye is None:  # Ctrl-C arrives twice: from the terminal and the server.
            self._goodbye = asyncio.create_task(self._close_sockets(finish))

    async def _close_sockets(self, finish: Callable[[], None]) -> None:
        self.hub.close()
        try:
            async with asyncio.timeout(GOODBYE_SECONDS):
                while len(self.hub.sockets):
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            log.info("live.sockets_cut", count=len(self.hub.sockets))
        finally:
            finish()
