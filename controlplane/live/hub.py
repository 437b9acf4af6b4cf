"""Hub that sends changes to the open sockets of this process.

From Redis it receives the ids of changed resources, and sends these resources to the sockets. It
also polls the data plane's memory for outages of PostgreSQL and Redis, which Redis can't announce.
Everything except database queries runs on the event loop of the web process.
"""

import asyncio
from collections.abc import Collection

import structlog

from controlplane.core.canonical import timestamp
from controlplane.core.errors import Unavailable
from controlplane.core.live import change_notices, topics
from controlplane.core.live.subscribers import ProcessState, Subscriber
from controlplane.core.live.topics import DEGRADATION
from controlplane.core.protocol import LIVE_CHANNEL, MISSED_NOTE
from controlplane.core.redis_subscriber import RedisSubscriber, SubscriberTiming
from controlplane.live.sockets import Socket, Sockets
from controlplane.live.stream import EventStream

from . import stream
from .connection_guard import ConnectionGuard
from .query_threads import QueryPool
from .topic_publisher import TopicPublisher

TIMING = SubscriberTiming(connect_seconds=1.0, silence_seconds=1.0, longest_pause_seconds=2.0)
WATCH_SECONDS = 0.1
HANDSHAKE_THREADS = 2
MAX_HANDSHAKES = 256
GOING_AWAY = 1012
"""Close code of a restarting server."""

log = structlog.get_logger(__name__)


class Hub:
    """Keeps this process's open sockets up to date; started and stopped with the server."""

    def __init__(self, process: ProcessState) -> None:
        self.process = process
        self.sockets = Sockets()
        self.query_pool = QueryPool()
        self.handshake_pool = QueryPool(HANDSHAKE_THREADS, MAX_HANDSHAKES)
        """Separate threads for handshakes, so that strangers can't delay open sockets."""
        self.stream = EventStream(topic.name for topic in topics.list_topics())
        self.is_subscribed = False
        """True while notifications are received."""
        self._is_disconnected = False
        """True after a failed attempt to receive notifications."""
        self.closing = False
        self._publishers: dict[str, TopicPublisher] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, redis_url: str) -> None:
        """Start the hub's tasks on the running event loop: subscriber, publishers and checks."""
        process = self.process
        self._publishers = {
            topic.name: TopicPublisher(
                topic, self.stream, self.sockets, self.query_pool, process.database_reachable
            )
            for topic in topics.list_topics()
            if topic.read is not None
        }
        redis_subscriber = RedisSubscriber(
            redis_url,
            LIVE_CHANNEL,
            TIMING,
            on_message=self.handle_notice,
            on_begin=self._handle_subscribed,
            on_lost=self._handle_lost,
        )
        guard = ConnectionGuard(self.sockets, self.query_pool, process, self._heartbeat)
        work = [
            redis_subscriber.run(),
            guard.run(),
            self._watch_degradation(),
            *(one.run() for one in self._publishers.values()),
        ]
        self._tasks = [asyncio.create_task(each) for each in work]

    async def stop(self) -> None:
        self.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        self.query_pool.close()
        self.handshake_pool.close()

    def close(self) -> None:
        """Close every socket and refuse new ones."""
        self.closing = True
        for socket in self.sockets:
            socket.end(GOING_AWAY, "The server is shutting down. Reconnect in a moment.")

    def add(self, subscriber: Subscriber) -> Socket:
        """Open a socket for a subscriber; the caller removes it from `sockets` when it closes.

        The socket's first message has the number of each topic's last message; every later change
        follows. Raises :class:`Unavailable` if the server is full or closing, and
        :class:`TooManyRequests` if the subscriber has too many sockets.
        """
        if self.closing:
            raise Unavailable("The server is shutting down. Reconnect.", retry_after=2)
        socket = Socket(subscriber, self._hello(subscriber.topics))
        self.sockets.add(socket)
        return socket

    def _hello(self, names: Collection[str]) -> str:
        return self.stream.hello(names, is_subscribed=self.is_subscribed)

    def handle_notice(self, text: bytes) -> None:
        """Pass the changed ids in a Redis message to the topic's publisher, if it is valid."""
        if text == MISSED_NOTE:
            self._handle_subscribed()
            return
        topic, ids = change_notices.decode_notice(text) or ("", [])
        if topic in self._publishers:
            self._publishers[topic].note(ids)

    def _handle_subscribed(self) -> None:
        """Make all clients reload when Redis is subscribed: changes may have been missed before."""
        self.is_subscribed, self._is_disconnected = True, False
        self.stream.restart()
        for publisher in self._publishers.values():
            publisher.forget()
        for socket in self.sockets:
            socket.restart(self._hello(socket.topics))

    def _handle_lost(self) -> None:
        """Tell all clients, once per outage, that this process gets no changes from Redis."""
        if self._is_disconnected:
            return
        self.is_subscribed, self._is_disconnected = False, True
        text = self._heartbeat()
        for socket in self.sockets:
            socket.send(text)

    async def _watch_degradation(self) -> None:
        """Loop: send the installation's degradation to clients whenever it changes."""
        previous = self.process.degradation(is_subscribed=not self._is_disconnected)
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            try:
                current = self.process.degradation(is_subscribed=not self._is_disconnected)
            except Exception:
                log.exception("live.degradation_unknown")
                continue
            if current == previous:
                continue
            previous, name = current, DEGRADATION.name
            text = self.stream.number_event(name, DEGRADATION.event, self._format_now(), current)
            for socket in self.sockets:
                socket.send_changes(name, [text])

    def _heartbeat(self) -> str:
        return stream.build_heartbeat(self._format_now(), is_subscribed=self.is_subscribed)

    def _format_now(self) -> str:
        return timestamp(self.process.wall())
