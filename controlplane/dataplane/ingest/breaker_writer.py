"""Writer of breaker changes, with buffered counter sums. One per process."""

import time
from collections.abc import Sequence
from datetime import datetime

import structlog

from controlplane.dataplane.postgres.database import Connection

from . import breaker_sql
from .breaker_notices import BreakerNotices
from .breaker_reports import BreakerChanges
from .dependency_discovery import DependencyIds
from .instance_rows import InstanceReport
from .minute_shares import spread_by_minute
from .report_fields import COUNTERS

FLUSH_SECONDS = 10.0
MAX_SUMS = 50_000
MAX_SUM = 2**53
"""Upper limit of a sum, so that the database's 8-byte integers don't overflow."""
_FALLBACK = COUNTERS.index("fallback")

Key = tuple[int, int]
"""A dependency's id, and the minute, counted from 1970."""

log = structlog.get_logger(__name__)


class BreakerWriter:
    """Writes breaker states, transitions and sums to the database, and announces changes."""

    def __init__(self) -> None:
        self.notices = BreakerNotices()
        self.minutes = MinuteSums()
        self.dependencies = DependencyIds()
        self._flushed_at = time.monotonic()

    async def resolve_ids(
        self, connection: Connection, reports: Sequence[InstanceReport]
    ) -> dict[str, int]:
        """Return the ids of the dependencies in `reports`; call this outside a transaction."""
        names = {name for one in reports for name in one.breakers or ()}
        return await self.dependencies.resolve_ids(connection, names) if names else {}

    async def write(
        self, connection: Connection, news: BreakerChanges, ids: dict[str, int]
    ) -> list[int]:
        """Write breaker changes in the open transaction; return the ids of tripped dependencies."""
        await breaker_sql.write_states(connection, news.states.values(), ids)
        news.reduced |= await breaker_sql.delete_former_boots(connection, news.new_boots)
        news.reduced |= await breaker_sql.delete_removed(connection, news.removed)
        written = await breaker_sql.write_transitions(connection, news.transitions, ids)
        return [dependency for dependency, tripped in written if tripped]

    def count(self, news: BreakerChanges, ids: dict[str, int], tripped: Sequence[int]) -> None:
        """Add written changes to the buffered sums and announce them; call this after commit."""
        for dependency in tripped:
            self.minutes.add_total(dependency, trips=1)
        for increment in news.increments:
            if increment.dependency in ids:
                self.minutes.add_counts(
                    ids[increment.dependency], increment.since, increment.until, increment.counts
                )
        if news.changed or news.rates_changed or news.reduced:
            self.notices.announce(
                (news.changed & ids.keys()) | news.reduced, news.rates_changed & ids.keys()
            )

    def is_due(self) -> bool:
        return bool(self.minutes) and time.monotonic() - self._flushed_at >= FLUSH_SECONDS

    async def flush_sums(self, connection: Connection) -> None:
        """Write the buffered sums by dependency and minute; they are lost if the write fails."""
        self._flushed_at = time.monotonic()
        if self.minutes.left_out:
            log.warning("ledger.counts_dropped", counts=self.minutes.left_out)
            self.minutes.left_out = 0
        if sums := self.minutes.take_sums():
            await breaker_sql.add_minutes(connection, sums)

    async def flush_totals(self, connection: Connection) -> None:
        """Write the buffered totals by dependency; they are lost if the write fails.

        The totals of a dependency whose row is locked are kept for the next call.
        """
        if totals := self.minutes.take_totals():
            done = await breaker_sql.add_totals(connection, totals)
            for dependency, (trips, fallbacks) in totals.items():
                if dependency not in done:
                    self.minutes.add_total(dependency, trips, fallbacks)


class MinuteSums:
    """Buffered counter sums by dependency and minute, and buffered totals by dependency.

    Both hold at most `most` keys; increments of further keys are dropped and counted in `left_out`.
    """

    def __init__(self, most: int = MAX_SUMS) -> None:
        self.left_out = 0
        """Number of increments that were not counted because the limit was reached."""
        self._most = most
        self._sums: dict[Key, list[int]] = {}
        self._totals: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return len(self._sums) + len(self._totals)

    def add_counts(
        self, dependency: int, since: datetime, until: datetime, counts: Sequence[int]
    ) -> None:
        """Add counter increments of a dependency, spread evenly over a time span."""
        self.add_total(dependency, fallbacks=counts[_FALLBACK])
        for minute, share in spread_by_minute(since.timestamp(), until.timestamp(), counts):
            sums = self._sums.get((dependency, minute))
            if sums is None:
                if len(self._sums) >= self._most:
                    self.left_out += 1
                    return
                sums = self._sums[dependency, minute] = [0] * len(COUNTERS)
            for place, number in enumerate(share):
                sums[place] = min(sums[place] + number, MAX_SUM)

    def take_sums(self) -> dict[Key, list[int]]:
        taken, self._sums = self._sums, {}
        return taken

    def take_totals(self) -> dict[int, list[int]]:
        """Return the totals by dependency, as [trips, fallbacks], and reset them."""
        taken, self._totals = self._totals, {}
        return taken

    def add_total(self, dependency: int, trips: int = 0, fallbacks: int = 0) -> None:
        if not trips and not fallbacks:
            return
        if dependency not in self._totals and len(self._totals) >= self._most:
            self.left_out += 1
            return
        totals = self._totals.setdefault(dependency, [0, 0])
        totals[0] = min(totals[0] + trips, MAX_SUM)
        totals[1] = min(totals[1] + fallbacks, MAX_SUM)
