"""Processes that share an instance's name, one after another or side by side. Pure.

The counters of the last few boots before the current one are kept. A boot that comes back adds only
what it has counted since; an unknown boot adds nothing at first.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from .instance_rows import InstanceReport, InstanceRow
from .slo_events import SloCounts

MAX_KEPT = 3
_FIRST = datetime.min.replace(tzinfo=UTC)


class FormerBoot(NamedTuple):
    """A boot that reported before the current one: its latest report, and when that arrived.

    `sli` is None if nothing was kept of it yet.
    """

    seq: int
    at: datetime
    sli: SloCounts | None


def find_former(row: InstanceRow, boot: UUID) -> FormerBoot | None:
    """Return the kept state of a boot that is not the row's; None without one."""
    found = row.reported.get("boots", {}).get(str(boot))
    return (
        None if found is None else FormerBoot(found[0], datetime.fromisoformat(found[1]), found[2])
    )


def keep_former(row: InstanceRow, boot: UUID) -> dict[str, Any]:
    """Return the former boots to keep once `boot` reports; the row's own is the newest."""
    boots: Mapping[str, Any] = row.reported.get("boots", {})
    result = {name: counted for name, counted in boots.items() if name != str(boot)}
    if row.boot not in (None, boot) and row.seq is not None and row.reported_at is not None:
        result.pop(str(row.boot), None)
        result[str(row.boot)] = [row.seq, row.reported_at.isoformat(), row.reported.get("sli")]
    return dict(list(result.items())[-MAX_KEPT:])


def find_start(before: InstanceRow, report: InstanceReport, at: datetime | None) -> datetime | None:
    """Return the time since when an unknown boot has counted; None if that is uncertain.

    A boot that started before the row's last report may have been counted before. Its clock may be
    ahead, which `sent_at` shows; a clock that is behind only makes the span longer.
    """
    started_at, sent_at = report.started_at, report.sent_at
    if started_at is None or sent_at is None or at is None:
        return None
    # A span first: a wrong clock could give a time before year 1, which datetime can't hold.
    span = at - started_at + max(timedelta(0), sent_at - at)
    if span < timedelta(0) or span > at - _FIRST:
        return None
    if before.reported_at is not None and span >= at - before.reported_at:
        return None
    return at - span
