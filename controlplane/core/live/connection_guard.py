"""Closes sockets whose credential has ended, or whose client doesn't read."""

import asyncio
import time
from collections.abc import Callable, Collection
from functools import partial

import structlog

from . import connections
from .query_threads import AWAY, Desk
from .sockets import Socket, Sockets
from .subscribers import Session, Visitor

EVERY_SECONDS = 2.0
TRAFFIC_SECONDS = 0.25
ANSWER_SECONDS = 2.0
QUIET_SECONDS = 20.0
NOT_WELCOME = 4401
"""Close code of a socket whose credential has ended."""
ENDED = "The credential has ended: sign in, or use another token."

log = structlog.get_logger(__name__)


class Guard:
    """Closes sockets whose credential has ended, or whose client doesn't read.

    `token_stands` returns whether a visitor's token is valid, without I/O; `ended_sessions` returns
    the ended ones of the given sessions, by one query; `heartbeat` is the text for quiet sockets.
    """

    def __init__(
        self,
        sockets: Sockets,
        desk: Desk,
        token_stands: Callable[[Visitor], bool],
        ended_sessions: Callable[[Collection[Session]], set[Session]],
        heartbeat: Callable[[], str],
    ) -> None:
        self._sockets = sockets
        self._desk = desk
        self._token_stands = token_stands
        self._ended_sessions = ended_sessions
        self._heartbeat = heartbeat

    async def run(self) -> None:
        await asyncio.gather(self._watch_traffic(), self._watch_sockets())

    async def _watch_traffic(self) -> None:
        while True:
            await asyncio.sleep(TRAFFIC_SECONDS)
            try:
                self._look_at_traffic()
            except Exception:
                log.exception("live.traffic_check_failed")

    def _look_at_traffic(self) -> None:
        """Close sockets that send oversized messages or don't read.

        The server would buffer the former; the server and the kernel would buffer output for the
        latter.
        """
        new = {one.connection for one in self._sockets if one.connection and not one.descriptor}
        found = connections.find(new) if new else {}
        for socket in self._sockets:
            if socket.connection is None:
                continue
            socket.descriptor = socket.descriptor or found.get(socket.connection)
            if socket.descriptor is None:
                continue
            seen = connections.traffic(socket.descriptor, socket.connection)
            if seen is None:
                continue
            if socket.floods(seen.received) or socket.stalls(seen, time.monotonic()):
                log.info("live.socket_cut", visitor=socket.visitor.name)
                socket.abandon()
                self._sockets.leave(socket)

    async def _watch_sockets(self) -> None:
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            try:
                self._look_at_sockets()
                self._look_at_tokens()
                await self._look_at_sessions()
            except AWAY as error:
                # Keep them: messages sent meanwhile don't depend on the database.
                log.info("live.sessions_unread", error=str(error))
            except Exception:
                log.exception("live.guard_failed")

    def _look_at_sockets(self) -> None:
        now, quiet = time.monotonic(), self._heartbeat()
        for socket in self._sockets:
            if socket.give_up(now):
                # The task ends once the server notices; the place is free at once.
                self._sockets.leave(socket)
            elif now - socket.said_at >= QUIET_SECONDS:
                socket.say(quiet)

    def _look_at_tokens(self) -> None:
        for socket in self._sockets:
            if socket.visitor.session is None and not self._token_stands(socket.visitor):
                _close(socket)

    async def _look_at_sessions(self) -> None:
        asked = {one.visitor.session for one in self._sockets if one.visitor.session}
        if not asked:
            return
        over = await self._desk.ask(partial(self._ended_sessions, asked), ANSWER_SECONDS)
        for socket in self._sockets:
            if socket.visitor.session in over:
                _close(socket)


def _close(socket: Socket) -> None:
    socket.end(NOT_WELCOME, ENDED)
