"""Background task that inserts emergency orders into PostgreSQL while it can be reached."""

import asyncio
import contextlib
from uuid import UUID

import structlog

from controlplane.core.timeouts import wait_at_most
from controlplane.dataplane.config import Config
from controlplane.dataplane.postgres import emergency_sql
from controlplane.dataplane.state import State

from .service import EmergencyOrders

IDLE_SECONDS = 0.5
"""Interval between checks for orders that arrived without a wake-up, and after failures."""
REINSERT_SECONDS = 10.0
"""Interval between insertions of an order that the database has not closed."""
WRITE_SECONDS = 10.0

log = structlog.get_logger(__name__)


class DatabaseWriter:
    """Inserts orders when they arrive, and again until the database has closed them.

    Other processes and data planes insert the same orders; the first insert counts. Inserts are
    repeated because a failover to a replica that lagged may have lost them.
    """

    def __init__(self, config: Config, state: State, service: EmergencyOrders) -> None:
        self._config = config
        self._state = state
        self._service = service
        self._woken = asyncio.Event()
        self._inserted: dict[UUID, frozenset[str]] = {}
        """The holders of each order as last inserted."""
        self._began_at = float("-inf")
        self._is_failing = False

    def wake(self) -> None:
        """Insert new orders now."""
        self._woken.set()

    async def run(self) -> None:
        while True:
            self._woken.clear()
            await self._write()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(IDLE_SECONDS):
                    await self._woken.wait()

    async def _write(self) -> None:
        state, now = self._state, self._state.now()
        if not state.database_reachable or state.database_read_only:
            self._inserted = {}
            return
        if now - self._began_at >= REINSERT_SECONDS:
            self._began_at, self._inserted = now, {}
        unclosed = state.orders.unclosed
        holders = {key: self._service.holders(key) for key in unclosed}
        due = [order for key, order in unclosed.items() if self._inserted.get(key) != holders[key]]
        if not due:
            return
        try:
            inserting = emergency_sql.insert_orders(self._config, due, holders)
            has_closed = await wait_at_most(WRITE_SECONDS, inserting)
        except Exception as error:  # Any error: the next try may succeed.
            if not self._is_failing:
                details = {"kind": type(error).__name__, "error": str(error)}
                log.error("emergency_order.not_inserted", orders=len(due), **details)
            self._is_failing = True
            return
        self._is_failing = False
        if has_closed:  # Perhaps before the last read, which did not ask for these orders.
            state.must_reread = True
        self._inserted |= {order.id: holders[order.id] for order in due}
