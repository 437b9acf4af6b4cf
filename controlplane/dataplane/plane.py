"""The data plane of one process: its state, and the tasks that keep it fresh."""

import asyncio
import contextlib
import gc
import signal
import threading
from collections.abc import Coroutine
from types import FrameType
from typing import Any

import structlog

from controlplane import asgi_server
from controlplane.dataplane.config import Config
from controlplane.dataplane.state import State

from .sync import disk_watch, wakeups
from .sync.config_follower import ConfigFollower
from .sync.refresher import Refresher
from .sync.snapshot_keeper import SnapshotKeeper
from .token_usage import note_uses

FIRST_LOOK_SECONDS = 2.0

log = structlog.get_logger(__name__)


class Plane:
    """Starts and stops with the server's lifespan; until started it has nothing to serve."""

    def __init__(self) -> None:
        self.state = State()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, config: Config) -> None:
        """Restore the saved copy, follow the database, and wait up to 2 s for its first answer."""
        state = self.state
        # Leave connections for short requests.
        state.listeners.most = min(config.most_held, asgi_server.max_connections() * 3 // 4)
        if threading.current_thread() is threading.main_thread():  # A server's own process.
            self._release_on_signal()
            asgi_server.raise_limit()
            if asgi_server.max_connections() < asgi_server.MIN_CONNECTIONS:
                log.warning("server.few_connections", connections=asgi_server.max_connections())
            _reduce_garbage_collection()
        keeper = SnapshotKeeper(config, state)
        await keeper.restore()
        follower = ConfigFollower(config, state)
        refresher = Refresher(config, state, follower, keeper)
        work: list[Coroutine[Any, Any, None]] = [
            refresher.run(),
            follower.run(),
            wakeups.listener(config.redis_url, refresher.wake, state.redis_answers).run(),
            note_uses(config, state),
            state.ledger.run(config),
            keeper.run(),
            disk_watch.watch(config.folder, state),
        ]
        self._tasks = [asyncio.create_task(each) for each in work]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_LOOK_SECONDS):
                await refresher.tried.wait()
                if state.database_reachable:
                    await follower.tried.wait()

    async def stop(self) -> None:
        """Cancel the tasks. The served copy stays, so that requests in progress are answered."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    def _release_on_signal(self) -> None:
        """Release held requests as soon as a termination signal arrives.

        The server waits for every request, streams included, before it ends its lifespan.
        """
        loop, listeners = asyncio.get_running_loop(), self.state.listeners
        for number in (signal.SIGTERM, signal.SIGINT):
            before = signal.getsignal(number)

            def let_go(given: int, frame: FrameType | None, before: Any = before) -> None:
                loop.call_soon_threadsafe(listeners.close)
                if callable(before):
                    before(given, frame)

            signal.signal(number, let_go)


def _reduce_garbage_collection() -> None:
    """Exclude loaded objects from garbage collection, and collect less often.

    Thousands of held requests would otherwise be scanned again and again without effect.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)
