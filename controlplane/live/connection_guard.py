"""Periodic checks of open sockets: credentials, silent connections, clients that don't read."""

import asyncio
import time
from collections.abc import Callable
from functools import partial

import structlog

from controlplane.core.live.subscribers import ProcessState

from . import connections
from .query_threads import DATABASE_ERRORS, QueryPool
from .sockets import Sockets

CHECK_SECONDS = 2.0
TRAFFIC_SECONDS = 0.25
QUERY_SECONDS = 2.0
QUIET_SECONDS = 20.0
UNAUTHENTICATED = 4401
"""Close code of a socket whose credential has ended."""
CREDENTIAL_ENDED = "These credentials have expired. Sign in, or use another token."

log = structlog.get_logger(__name__)


class ConnectionGuard:
    """Closes sockets whose token or session has ended, and sockets whose client doesn't read.

    `heartbeat` builds the text that is sent to idle sockets.
    """

    def __init__(
        self,
        sockets: Sockets,
        query_pool: QueryPool,
        process: ProcessState,
        heartbeat: Callable[[], str],
    ) -> None:
        self._sockets = sockets
        self._query_pool = query_pool
        self._process = process
        self._heartbeat = heartbeat

    async def run(self) -> None:
        await asyncio.gather(self._watch_traffic(), self._watch_sockets())

    async def _watch_traffic(self) -> None:
        while True:
            await asyncio.sleep(TRAFFIC_SECONDS)
            try:
                self._check_traffic()
            except Exception:
                log.exception("live.traffic_check_failed")

    def _check_traffic(self) -> None:
        """Close sockets that send oversized messages or don't acknowledge output.

        Otherwise the server would buffer both without limit.
        """
        new = {one.connection for one in self._sockets if one.connection and not one.descriptor}
        descriptors = connections.find_descriptors(new) if new else {}
        for socket in self._sockets:
            if socket.connection is None:
                continue
            socket.descriptor = socket.descriptor or descriptors.get(socket.connection)
            if socket.descriptor is None:
                continue
            traffic = connections.read_traffic(socket.descriptor, socket.connection)
            if traffic is None:
                continue
            if socket.is_flooding(traffic.received) or socket.is_stalled(traffic, time.monotonic()):
                log.info("live.socket_cut", visitor=socket.subscriber.name)
                socket.abandon()
                self._sockets.remove(socket)

    async def _watch_sockets(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                self._check_sockets()
                await self._check_sessions()
            except DATABASE_ERRORS as error:
                # Keep the sockets open: an outage of the database must not close them.
                log.info("live.session_check_failed", error=str(error))
            except Exception:
                log.exception("live.guard_failed")

    def _check_sockets(self) -> None:
        now, heartbeat = time.monotonic(), self._heartbeat()
        for socket in self._sockets:
            if socket.abandon_if_stuck(now):
                # Its task ends later, but its slot is free immediately.
                self._sockets.remove(socket)
                continue
            subscriber = socket.subscriber
            if subscriber.session is None and not self._process.is_token_valid(subscriber):
                socket.end(UNAUTHENTICATED, CREDENTIAL_ENDED)
            elif now - socket.sent_at >= QUIET_SECONDS:
                socket.send(heartbeat)

    async def _check_sessions(self) -> None:
        sessions = {one.subscriber.session for one in self._sockets if one.subscriber.session}
        if not sessions:
            return
        find = partial(self._process.find_ended_sessions, sessions)
        ended = await self._query_pool.run(find, QUERY_SECONDS)
        for socket in self._sockets:
            if socket.subscriber.session in ended:
                socket.end(UNAUTHENTICATED, CREDENTIAL_ENDED)
