"""Processes that share an instance's name, one after another or side by side. Pure.

The last few that reported before the present one are kept with what they had counted. So one that
comes back adds what it counted since, and one that is not known any more adds nothing at first.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from .instance_rows import Report, Row
from .slo_events import Counts

MAX_KEPT = 3
_FIRST = datetime.min.replace(tzinfo=UTC)


class Former(NamedTuple):
    """A boot that reported before the present one: its newest report, and when that came in.

    `sli` is None if nothing was kept of it yet.
    """

    seq: int
    at: datetime
    sli: Counts | None


def former(row: Row, boot: UUID) -> Former | None:
    """What is kept of a boot that is not the row's."""
    found = row.reported.get("boots", {}).get(str(boot))
    return None if found is None else Former(found[0], datetime.fromisoformat(found[1]), found[2])


def kept(row: Row, boot: UUID) -> dict[str, Any]:
    """What stands of former boots once `boot` reports: the row's own is the newest of them."""
    boots: Mapping[str, Any] = row.reported.get("boots", {})
    result = {name: counted for name, counted in boots.items() if name != str(boot)}
    if row.boot not in (None, boot) and row.seq is not None and row.reported_at is not None:
        result.pop(str(row.boot), None)
        result[str(row.boot)] = [row.seq, row.reported_at.isoformat(), row.reported.get("sli")]
    return dict(list(result.items())[-MAX_KEPT:])


def began(before: Row, report: Report, at: datetime | None) -> datetime | None:
    """Since when a boot that is not known has counted; None if that is not to be known.

    If it was there before the row's last report, it may have been counted before. Its clock may be
    ahead, which `sent_at` tells; if it is behind, the span is only longer than it was.
    """
    started_at, sent_at = report.started_at, report.sent_at
    if started_at is None or sent_at is None or at is None:
        return None
    # A span, because clocks may say anything: a moment before the year 1 there is not.
    span = at - started_at + max(timedelta(0), sent_at - at)
    if span < timedelta(0) or span > at - _FIRST:
        return None
    if before.reported_at is not None and span >= at - before.reported_at:
        return None
    return at - span
