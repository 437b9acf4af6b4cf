"""Ids of reported dependencies; dependencies that are not registered are created.

The number of dependencies created from reports is limited across all processes, because any token
with `report:write` can invent names.
"""

import time
from collections.abc import Iterable

import structlog

from breakers.names import MAX_DISCOVERED
from controlplane.dataplane.postgres.database import Connection

from . import breaker_sql

MAX_REMEMBERED = 50_000
RECOUNT_SECONDS = 10.0
WAIT_SECONDS = 1.0
"""Pause before retrying names that another transaction was registering."""

log = structlog.get_logger(__name__)


class DependencyIds:
    """A cache of dependency ids by name, which creates missing dependencies.

    No dependency is created once the database has `most` that are known from reports alone.
    """

    def __init__(self, most: int = MAX_DISCOVERED) -> None:
        self._most = most
        self._ids: dict[str, int] = {}
        self._full_until = float("-inf")
        self._waiting: set[str] = set()
        self._waits_until = float("-inf")
        self._is_logged = False

    async def resolve_ids(self, connection: Connection, names: Iterable[str]) -> dict[str, int]:
        """Return the ids of dependencies by name, creating missing ones.

        Omits names above the limit, and names that another transaction is registering. Uses
        transactions of its own, so that no lock is held while rows of instances are being locked.
        """
        requested = set(names)
        known = {name: self._ids[name] for name in requested if name in self._ids}
        missing = sorted(requested - known.keys())
        if missing:
            known |= await self._find(connection, missing)
            missing = [name for name in missing if name not in known]
        if self._waiting and time.monotonic() >= self._waits_until:
            self._waiting.clear()
        missing = [name for name in missing if name not in self._waiting]
        if missing and (admitted := await self._admit(connection, missing)):
            if await breaker_sql.create_dependencies(connection, admitted):
                known |= await self._find(connection, admitted)
            else:
                self._waiting.update(admitted)
                self._waits_until = time.monotonic() + WAIT_SECONDS
        return known

    def clear(self) -> None:
        self._ids.clear()

    async def _find(self, connection: Connection, names: list[str]) -> dict[str, int]:
        columns = breaker_sql.split_names(names)
        cursor = await connection.execute(breaker_sql.FIND_IDS, columns)
        ids: dict[str, int] = dict(await cursor.fetchall())
        if len(self._ids) + len(ids) > MAX_REMEMBERED:
            self._ids.clear()
        self._ids |= ids
        return ids

    async def _admit(self, connection: Connection, missing: list[str]) -> list[str]:
        """Return the first of the `missing` names, as many as may be created within the limit.

        Once the limit is reached, dependencies are counted again only every 10 s.
        """
        now = time.monotonic()
        if now < self._full_until:
            return []
        cursor = await connection.execute(breaker_sql.COUNT_DISCOVERED, (self._most,))
        room = self._most - (await cursor.fetchall())[0][0]
        if room < len(missing):
            self._full_until = now + RECOUNT_SECONDS
            if not self._is_logged:
                log.warning("ledger.dependencies_full", most=self._most, names=len(missing) - room)
            self._is_logged = True
        return missing[:room]
