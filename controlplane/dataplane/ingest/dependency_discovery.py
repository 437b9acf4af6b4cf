"""Ids of reported dependencies by name: looked up, or created if not registered.

Anyone who may report can invent names, so the number of discovered dependencies is limited across
all processes. Registered ones don't count.
"""

import time
from collections.abc import Iterable

import structlog

from breakers.names import MAX_DISCOVERED
from controlplane.dataplane.postgres.database import Connection

from . import breaker_sql

MAX_REMEMBERED = 50_000
LOOK_SECONDS = 10.0
WAIT_SECONDS = 1.0
"""Delay before retrying names that another transaction is registering."""

log = structlog.get_logger(__name__)


class DependencyIds:
    """A cache of dependency ids by name."""

    def __init__(self, most: int = MAX_DISCOVERED) -> None:
        self._most = most
        self._ids: dict[str, int] = {}
        self._full_until = float("-inf")
        self._waiting: set[str] = set()
        self._waits_until = float("-inf")
        self._is_logged = False

    async def resolve_ids(self, connection: Connection, names: Iterable[str]) -> dict[str, int]:
        """Return the ids of these dependencies, creating missing ones up to the limit.

        Names above the limit, and names that another transaction is registering, are left out. Runs
        in its own transactions, so that no lock is held when the instances' rows are locked.
        """
        wanted = set(names)
        known = {name: self._ids[name] for name in wanted if name in self._ids}
        missing = sorted(wanted - known.keys())
        if missing:
            known |= await self._find(connection, missing)
            missing = [name for name in missing if name not in known]
        if missing := self._not_waiting(missing):
            known |= await self._create(connection, await self._admit(connection, missing))
        return known

    def forget(self) -> None:
        """Clear the cache, because rows may have been deleted or replaced."""
        self._ids.clear()

    def _not_waiting(self, missing: list[str]) -> list[str]:
        if self._waiting and time.monotonic() >= self._waits_until:
            self._waiting.clear()
        return [name for name in missing if name not in self._waiting]

    async def _create(self, connection: Connection, names: list[str]) -> dict[str, int]:
        if not names:
            return {}
        if await breaker_sql.discover(connection, names):
            return await self._find(connection, names)
        self._waiting.update(names)
        self._waits_until = time.monotonic() + WAIT_SECONDS
        return {}

    async def _find(self, connection: Connection, names: list[str]) -> dict[str, int]:
        found = await breaker_sql.find(connection, names)
        if len(self._ids) + len(found) > MAX_REMEMBERED:
            self._ids.clear()
        self._ids |= found
        return found

    async def _admit(self, connection: Connection, missing: list[str]) -> list[str]:
        """Return as many of `missing` as fit; once full, check the limit only every 10 s."""
        now = time.monotonic()
        if now < self._full_until:
            return []
        room = self._most - await breaker_sql.count(connection, self._most)
        if room < len(missing):
            self._full_until = now + LOOK_SECONDS
            if not self._is_logged:
                log.warning("ledger.dependencies_full", most=self._most, names=len(missing) - room)
            self._is_logged = True
        return missing[:room]
