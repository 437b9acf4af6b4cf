"""Buffered counts of checks by switch and minute, written in small batches between reports.

A count whose write failed is lost rather than counted twice.
"""

import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

import orjson

from controlplane.core.instances import rates
from controlplane.core.instances.check_series import HOUR_SECONDS, MINUTE_SECONDS
from controlplane.dataplane.postgres.database import Connection

from .instance_rows import InstanceRow
from .minute_shares import spread_by_minute

FLUSH_SECONDS = 10.0
MAX_SUMS = 50_000
MAX_AT_ONCE = 500
"""Sums written before waiting reports get their turn: about 10 ms."""
# One overflowing number must not prevent all others from being written.
MAX_TOTAL = 2**62
ADD_COUNTS = f"""
    INSERT INTO core_checkcount AS c (switch, seconds, start, allowed, blocked)
    SELECT switch, seconds, start, allowed, blocked
    FROM json_to_recordset(%s::json)
         AS counted (switch text, seconds smallint, start bigint, allowed bigint, blocked bigint)
    ORDER BY switch COLLATE "C", seconds, start
    ON CONFLICT (switch, seconds, start) DO UPDATE SET
        allowed = least(c.allowed, {MAX_TOTAL}) + EXCLUDED.allowed,
        blocked = least(c.blocked, {MAX_TOTAL}) + EXCLUDED.blocked
"""  # noqa: S608


class CheckIncrement(NamedTuple):
    """Checks of a switch between `since` and `until` (Unix seconds): allowed and blocked ones."""

    switch: str
    since: float
    until: float
    counts: tuple[int, int]


def list_increments(
    before: InstanceRow,
    after: InstanceRow,
    switches: Iterable[str],
    until: datetime,
    since: datetime | None = None,
) -> list[CheckIncrement]:
    """Return the checks of `switches` that were added to an instance's row until `until`.

    They were counted since `since`, or else since the same boot's previous report, or since the
    boot's start; if that is unknown, at the time `until`.
    """
    if after.checks is before.checks:
        return []
    if since is None:
        since = before.reported_at if before.boot == after.boot else after.started_at
    end = until.timestamp()
    start = end if since is None else min(since.timestamp(), end)
    found = []
    for switch in switches:
        entry, known = after.checks.get(switch), before.checks.get(switch)
        if entry is None or entry is known:
            continue
        counts = _total(entry, "allowed", known), _total(entry, "blocked", known)
        if any(counts):
            found.append(CheckIncrement(switch, start, end, counts))
    return found


def _total(entry: rates.Entry, name: str, known: rates.Entry | None) -> int:
    return max(0, int(entry[name]) - int(known[name] if known else 0))


class CheckSums:
    """Buffered sums for at most `most` pairs of switch and minute.

    Increments of further pairs are dropped and counted in `left_out`.
    """

    def __init__(self, most: int = MAX_SUMS) -> None:
        self.left_out = 0
        """Number of increments that were not counted because the limit was reached."""
        self._most = most
        self._sums: dict[tuple[str, int], list[int]] = {}
        self._due: list[tuple[tuple[str, int], list[int]]] = []
        self._flushed_at = time.monotonic()

    def __len__(self) -> int:
        return len(self._sums) + len(self._due)

    def add(self, increments: Iterable[CheckIncrement]) -> None:
        """Add increments, each spread evenly over its time; call this after the commit."""
        for switch, since, until, counts in increments:
            for minute, share in spread_by_minute(since, until, counts):
                sums = self._sums.get((switch, minute))
                if sums is None:
                    if len(self._sums) >= self._most:
                        self.left_out += 1
                        break
                    sums = self._sums[switch, minute] = [0, 0]
                sums[0] += share[0]
                sums[1] += share[1]

    def is_due(self) -> bool:
        due = time.monotonic() - self._flushed_at >= FLUSH_SECONDS
        return bool(self._due) or (bool(self._sums) and due)

    async def flush(self, connection: Connection) -> None:
        """Write the next batch of sums, by the minute and by the hour."""
        if not self._due:
            self._flushed_at = time.monotonic()
            self._due, self._sums = sorted(self._sums.items()), {}
        batch, self._due = self._due[-MAX_AT_ONCE:], self._due[:-MAX_AT_ONCE]
        await connection.execute(ADD_COUNTS, (orjson.dumps(_to_rows(dict(batch))).decode(),))


def _to_rows(sums: Mapping[tuple[str, int], list[int]]) -> list[dict[str, str | int]]:
    totals: dict[tuple[str, int, int], list[int]] = {}
    for (switch, minute), counts in sums.items():
        start = minute * MINUTE_SECONDS
        totals[switch, MINUTE_SECONDS, start] = counts
        hour = totals.setdefault((switch, HOUR_SECONDS, start - start % HOUR_SECONDS), [0, 0])
        hour[0] += counts[0]
        hour[1] += counts[1]
    return [
        {
            "switch": switch,
            "seconds": seconds,
            "start": start,
            "allowed": min(allowed, rates.MAX_CALLS),
            "blocked": min(blocked, rates.MAX_CALLS),
        }
        for (switch, seconds, start), (allowed, blocked) in totals.items()
    ]
