"""The data plane of one process: its state, and the background tasks that update it."""

import asyncio
import contextlib
import gc
import signal
import threading
from collections.abc import Coroutine, Sequence
from functools import partial
from types import FrameType
from typing import Any

import structlog

from controlplane import asgi_server
from controlplane.core.timeouts import wait_at_most
from controlplane.dataplane.config import Config
from controlplane.dataplane.postgres import database
from controlplane.dataplane.state import State
from switches.emergency.orders import Order

from .emergency.authorization import Authorizer
from .emergency.database_writer import DatabaseWriter
from .emergency.folder import watch_folder
from .emergency.handlers import EmergencyEndpoints
from .emergency.page.endpoint import EmergencyPage
from .emergency.peers import Peers
from .emergency.redis_channel import RedisChannel
from .emergency.service import EmergencyOrders
from .relay.process_identity import ProcessIdentity
from .sync import disk_watch
from .sync.config_follower import ConfigFollower
from .sync.refresher import Refresher, make_subscriber
from .sync.snapshot_keeper import SnapshotKeeper

FIRST_LOOK_SECONDS = 2.0
TOKEN_USE_SECONDS = 10.0

log = structlog.get_logger(__name__)


class Plane:
    """A process's data plane: state and background tasks, which run during the ASGI lifespan."""

    def __init__(self) -> None:
        self.state = State()
        self.emergency_orders = EmergencyOrders(self.state)
        self.authorizer = Authorizer(self.state)
        self.emergency_endpoints = EmergencyEndpoints(self.emergency_orders, self.authorizer)
        self.peers = Peers(self.state, self.emergency_orders)
        self.emergency_page = EmergencyPage(self.emergency_orders, self.authorizer)
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, config: Config) -> None:
        """Restore the saved snapshot, start the tasks, and wait up to 2 s for the first poll."""
        state = self.state
        state.cors_origins = config.cors_origins
        # Leave connections for short requests.
        state.listeners.most = min(config.most_held, asgi_server.max_connections() * 3 // 4)
        if threading.current_thread() is threading.main_thread():  # Not in a test's thread.
            self._release_on_signal()
            asgi_server.raise_limit()
            if asgi_server.max_connections() < asgi_server.MIN_CONNECTIONS:
                log.warning("server.few_connections", connections=asgi_server.max_connections())
            # Exclude loaded objects from garbage collection, and collect less often.
            gc.collect()
            gc.freeze()
            gc.set_threshold(20_000, 20, 100)
        keeper = SnapshotKeeper(config, state, self.emergency_orders.forget_old)
        await keeper.restore()
        self.configure(config)
        await self.emergency_orders.restore()
        follower = ConfigFollower(config, state)
        refresher = Refresher(config, state, follower, keeper)
        writer = DatabaseWriter(config, state, self.emergency_orders)
        self.emergency_orders.on_news = writer.wake
        identity = ProcessIdentity(config.plane)
        state.ledger.describe_process = partial(identity.describe, state)
        subscriber = make_subscriber(config.redis_url, refresher.wake, state.set_redis_reachable)
        work: tuple[Coroutine[Any, Any, None], ...] = (
            refresher.run(),
            follower.run(),
            subscriber.run(),
            record_token_uses(config, state),
            state.ledger.run(config),
            keeper.run(),
            disk_watch.watch_disk(config.folder, state),
            writer.run(),
            *self.exchange_orders(config),
        )
        self._tasks = [asyncio.create_task(each) for each in work]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_LOOK_SECONDS):
                await refresher.tried.wait()
                if state.database_reachable:
                    await follower.tried.wait()

    def exchange_orders(self, config: Config) -> tuple[Coroutine[Any, Any, None], ...]:
        """Return the tasks that exchange emergency orders with other data planes and processes."""
        if not config.order_keys:
            return ()
        peers, orders = self.peers, self.emergency_orders
        peers.configure(config)
        channel = RedisChannel(config.redis_url, config.order_keys[0], peers.receive)

        async def share(accepted: Sequence[Order]) -> None:
            channel.publish(accepted)
            await peers.push(accepted)

        orders.share, orders.count_planes = share, peers.count_planes
        return peers.run(), channel.run(), watch_folder(orders)

    def configure(self, config: Config) -> None:
        """Configure what takes emergency orders."""
        self.authorizer.trusted_proxies = config.trusted_proxies
        self.emergency_orders.configure(config)
        self.emergency_page.configure(config)

    async def stop(self) -> None:
        """Cancel the tasks; the served snapshot stays, so that open requests are answered."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

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


async def record_token_uses(config: Config, state: State) -> None:
    """Update `last_used_at` of the used tokens every `usage_seconds`, until canceled."""
    while True:
        await asyncio.sleep(config.usage_seconds)
        used, state.used_tokens = state.used_tokens, set()
        if not used or not state.database_reachable:
            continue
        try:
            await wait_at_most(TOKEN_USE_SECONDS, database.record_token_use(config, used))
        except Exception as error:
            log.info("dataplane.token_use_lost", kind=type(error).__name__, error=str(error))
