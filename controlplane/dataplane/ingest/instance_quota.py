"""Limit on the number of instances in the database, because any poller can invent names."""

import time
from collections.abc import Set

import structlog

from controlplane.dataplane.postgres.database import Connection

from . import instance_sql

COUNT_SECONDS = 1.0
log = structlog.get_logger(__name__)


class InstanceQuota:
    """A limit of about `most` instances across all processes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = 0
        self._counted_at = float("-inf")
        self._is_logged = False

    async def admit(self, connection: Connection, names: Set[str]) -> Set[str]:
        """Return the names that may be written: all, or only existing ones if the table is full."""
        now = time.monotonic()
        if self._left < len(names) and now - self._counted_at >= COUNT_SECONDS:
            self._left = self._most - await instance_sql.count_instances(connection, self._most)
            self._counted_at = now
            self._is_logged = self._is_logged and self._left < len(names)
        if self._left >= len(names):
            self._left -= len(names)
            return names
        known = await instance_sql.find_existing(connection, sorted(names))
        if len(known) < len(names) and not self._is_logged:
            log.warning("ledger.instances_full", most=self._most, names=len(names) - len(known))
            self._is_logged = True
        return known
