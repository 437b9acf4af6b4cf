"""The data plane of one process: its state, and the tasks that keep it fresh."""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any

from controlplane.dataplane.config import Config
from controlplane.dataplane.refresher import Refresher
from controlplane.dataplane.state import State
from controlplane.dataplane.usage import note_uses
from controlplane.dataplane.wakeups import Listener

FIRST_LOOK_SECONDS = 2.0


class Plane:
    """Starts and stops with the server's lifespan; until started it has nothing to serve."""

    def __init__(self) -> None:
        self.state = State()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, config: Config) -> None:
        """Begin to follow the database, and give it a moment to answer before requests come."""
        refresher = Refresher(config, self.state)
        work: list[Coroutine[Any, Any, None]] = [
            refresher.run(),
            Listener(config.redis_url, refresher.wake).run(),
            note_uses(config, self.state),
        ]
        self._tasks = [asyncio.create_task(each) for each in work]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_LOOK_SECONDS):
                await refresher.tried.wait()

    async def stop(self) -> None:
        """End the tasks. What is served stays, so that requests under way are answered."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
