"""The data plane of one process: its state, and the background tasks that update it.

A data plane is fed by PostgreSQL and Redis, a relay by its upstream; all else is the same.
"""

import asyncio
import contextlib
import gc
import signal
import threading
from collections.abc import Coroutine, Sequence
from types import FrameType
from typing import Any, Protocol

import structlog

from controlplane import asgi_server
from controlplane.dataplane.config import Config, RelayConfig, ServingConfig
from controlplane.dataplane.state import State

from .database_feed import DatabaseFeed
from .emergency.authorization import Authorizer
from .emergency.handlers import EmergencyEndpoints
from .emergency.order_exchange import OrderExchange
from .emergency.page.endpoint import EmergencyPage
from .emergency.peers import Peers
from .emergency.service import EmergencyOrders
from .relay.lost_versions import DatabaseVersionCheck, LostVersionEndpoint
from .relay.orders import RelayOrders
from .relay.orders_endpoint import RelayOrdersEndpoint
from .relay.receiver import BatchReceiver
from .relay.source import StateSource
from .relay.stream import RelayStreams
from .relay.upstream_feed import UpstreamFeed

log = structlog.get_logger(__name__)


class StateFeed(Protocol):
    """Tasks that keep the state up to date from the database, or from an upstream."""

    async def restore(self) -> None:
        """Serve what is saved on disk."""

    def tasks(self) -> Sequence[Coroutine[Any, Any, None]]:
        """Return the tasks to run until the process ends."""

    async def wait_until_read(self) -> None:
        """Wait until the first read has succeeded or failed; raise TimeoutError after a while."""

    async def report_stop(self) -> None:
        """Report that this process stops, once its tasks have ended; give up after a second."""


class Plane:
    """A process's data plane: state and background tasks, which run during the ASGI lifespan."""

    def __init__(self) -> None:
        self.state = State()
        self.emergency_orders = EmergencyOrders(self.state)
        self.authorizer = Authorizer(self.state)
        self.emergency_endpoints = EmergencyEndpoints(self.emergency_orders, self.authorizer)
        self.order_exchange = OrderExchange(self.state, self.emergency_orders)
        self.peers = Peers(self.state, self.emergency_orders, self.order_exchange)
        self.relay_orders = RelayOrdersEndpoint(self.state, self.order_exchange)
        self.emergency_page = EmergencyPage(self.emergency_orders, self.authorizer)
        self.batch_receiver = BatchReceiver()
        self.lost_versions = LostVersionEndpoint()
        self.relay_streams = RelayStreams(self.state, StateSource(self.state))
        self._tasks: list[asyncio.Task[None]] = []
        self._feed: StateFeed | None = None

    async def start(self, config: Config | RelayConfig) -> None:
        """Restore the saved snapshot, start the tasks, and wait a moment for the first read."""
        self.state.cors_origins = config.cors_origins
        # Leave connections for short requests.
        most = asgi_server.max_connections() * 3 // 4
        self.state.listeners.most = min(config.most_held, most)
        if threading.current_thread() is threading.main_thread():  # Not in a test's thread.
            self._prepare_process()
        feed = self._feed = self._make_feed(config)
        await feed.restore()
        self.configure(config)
        await self.emergency_orders.restore()
        work = [*feed.tasks()]
        if config.published_file.is_set:
            # Imported only if needed, because it imports slow libraries.
            from .published_file.locations import make_location
            from .published_file.publisher import Publisher

            work.append(Publisher(self.state, make_location(config.published_file)).run())
        self._tasks = [asyncio.create_task(each) for each in work]
        with contextlib.suppress(TimeoutError):
            await feed.wait_until_read()

    def configure(self, config: ServingConfig) -> None:
        """Configure what takes emergency orders and batches of relays."""
        self.batch_receiver.name = config.plane
        self.authorizer.trusted_proxies = config.trusted_proxies
        self.emergency_orders.configure(config)
        self.emergency_page.configure(config)

    async def stop(self) -> None:
        """Cancel the tasks; the served snapshot stays, so that open requests are answered."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        if self._feed is not None:
            await self._feed.report_stop()
            self._feed = None

    def _make_feed(self, config: Config | RelayConfig) -> StateFeed:
        if isinstance(config, RelayConfig):
            relay_orders = RelayOrders(
                config, self.state, self.emergency_orders, self.order_exchange, self.peers
            )
            orders, streams = self.emergency_orders, self.relay_streams
            feed = UpstreamFeed(config, self.state, orders, relay_orders, streams)
            self.lost_versions.ask = feed.ask_version
            return feed
        self.lost_versions.ask = DatabaseVersionCheck(config, self.state)
        return DatabaseFeed(config, self.state, self.emergency_orders, self.peers)

    def _prepare_process(self) -> None:
        """Raise the limit of connections, end held requests on signals, and tune the collector."""
        self._release_on_signal()
        asgi_server.raise_limit()
        if asgi_server.max_connections() < asgi_server.MIN_CONNECTIONS:
            log.warning("server.few_connections", connections=asgi_server.max_connections())
        # Exclude loaded objects from garbage collection, and collect less often.
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 20, 100)

    def _release_on_signal(self) -> None:
        """End held requests on SIGTERM and SIGINT.

        The server waits for open requests, including streams, before it ends the lifespan.
        """
        loop, listeners = asyncio.get_running_loop(), self.state.listeners
        for number in (signal.SIGTERM, signal.SIGINT):
            before = signal.getsignal(number)

            def release(received: int, frame: FrameType | None, before: Any = before) -> None:
                loop.call_soon_threadsafe(listeners.close)
                if callable(before):
                    before(received, frame)

            signal.signal(number, release)
