"""Writes breaker changes of one process to the tables, and buffers sums in between."""

import time
from collections.abc import Sequence

import structlog

from controlplane.dataplane.postgres.database import Connection

from . import breaker_sql
from .breaker_minutes import MinuteSums
from .breaker_notices import BreakerNotices
from .breaker_reports import BreakerChanges
from .dependency_discovery import DependencyIds
from .instance_rows import InstanceReport

FLUSH_SECONDS = 10.0

log = structlog.get_logger(__name__)


class BreakerWriter:
    """Writes the breaker part of reports: states, transitions, sums and notices."""

    def __init__(self) -> None:
        self.notices = BreakerNotices()
        self.minutes = MinuteSums()
        self._dependencies = DependencyIds()
        self._flushed_at = time.monotonic()

    def __bool__(self) -> bool:
        """Return True if there is something to write, now or later."""
        return bool(self.minutes)

    async def resolve_ids(
        self, connection: Connection, reports: Sequence[InstanceReport]
    ) -> dict[str, int]:
        """Return the ids of all dependencies in `reports`; call before the transaction."""
        names = {name for one in reports for name in one.breakers or ()}
        return await self._dependencies.resolve_ids(connection, names) if names else {}

    async def write(
        self, connection: Connection, news: BreakerChanges, ids: dict[str, int]
    ) -> list[int]:
        """Write changes within the caller's transaction; return the dependencies that tripped.

        Dependencies that lost a breaker are added to `news.lost`.
        """
        await breaker_sql.write_states(connection, news.states.values(), ids)
        news.lost |= await breaker_sql.end_former_boots(connection, news.begun)
        news.lost |= await breaker_sql.end_left_out(connection, news.gone)
        written = await breaker_sql.write_transitions(connection, news.transitions, ids)
        return [dependency for dependency, tripped in written if tripped]

    def count(self, news: BreakerChanges, ids: dict[str, int], tripped: Sequence[int]) -> None:
        """Count and announce the changes, after the transaction has been committed."""
        for dependency in tripped:
            self.minutes.tripped(dependency)
        for growth in news.growths:
            if growth.dependency in ids:
                self.minutes.grew(ids[growth.dependency], growth.since, growth.until, growth.counts)
        if news.moved or news.stirred or news.lost:
            self.notices.announce((news.moved & ids.keys()) | news.lost, news.stirred & ids.keys())

    def forget_dependencies(self) -> None:
        """Forget known ids after a refused write: a dependency may have been deleted."""
        self._dependencies.forget()

    def is_due(self) -> bool:
        """Return True if sums should be written now."""
        return bool(self.minutes) and time.monotonic() - self._flushed_at >= FLUSH_SECONDS

    async def flush_sums(self, connection: Connection) -> None:
        """Write the sums by minute; sums of a failed write are lost."""
        self._flushed_at = time.monotonic()
        if self.minutes.left_out:
            log.warning("ledger.counts_left_out", counts=self.minutes.left_out)
            self.minutes.left_out = 0
        if sums := self.minutes.take_sums():
            await breaker_sql.add_minutes(connection, sums)

    async def flush_totals(self, connection: Connection) -> None:
        """Write the totals, independently of the sums; totals of a failed write are lost."""
        if totals := self.minutes.take_totals():
            done = await breaker_sql.add_totals(connection, totals)
            self.minutes.give_back({one: of for one, of in totals.items() if one not in done})
