"""Serves stored orders in batches: rendering takes long with thousands of orders."""

import asyncio
from collections.abc import Callable

from controlplane.dataplane.state import State
from switches.emergency.orders import Order


class BatchedServing:
    """Adds orders to the state, those that arrive during a rendering together.

    `on_news` is called after orders were added.
    """

    def __init__(self, state: State, on_news: Callable[[], None]) -> None:
        self._state = state
        self._on_news = on_news
        self._waiting: list[Order] = []
        self._next_batch: asyncio.Future[None] | None = None
        self._ended_at = self._took_seconds = 0.0
        """The time at which the last batch was served, and its duration, in monotonic seconds."""

    async def serve(self, order: Order) -> None:
        """Return once the order is served."""
        self._waiting.append(order)
        if self._next_batch is None:
            self._next_batch = asyncio.ensure_future(self._serve_waiting())
        await asyncio.shield(self._next_batch)

    async def _serve_waiting(self) -> None:
        # Other requests get at least half of the event loop.
        pause_seconds = self._ended_at + self._took_seconds - self._state.now()
        await asyncio.sleep(max(0.0, pause_seconds))
        orders, self._waiting, self._next_batch = self._waiting, [], None
        began = self._state.now()
        if self._state.add_orders(orders):
            self._on_news()
        self._ended_at = self._state.now()
        self._took_seconds = self._ended_at - began
