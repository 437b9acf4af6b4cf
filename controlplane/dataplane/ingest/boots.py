"""Boots (process starts) of an instance: its former boots, and contests between boots. Pure.

The counters of the last few boots are stored, so that a former boot that reports again adds only
its new counts. The first report of an unknown boot adds no counts if its start time is uncertain.

After a restart or a token change, the former process or token should be silent. If it reports while
its successor reports too, the instance is contested.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from .instance_rows import InstanceReport, InstanceRow, SloCounts

MAX_KEPT = 3
MAX_TOKENS = 3
"""Number of recent tokens stored per instance."""
OVERLAP = timedelta(seconds=10)
"""Time after a process's first report in which its predecessor may still report."""
TOKEN_RETURNS_WITHIN = timedelta(minutes=5)
"""Time in which reports by a former token are a contest; later, the token was changed back."""
NOTED_EVERY = timedelta(minutes=1)
STILL_REPORTS = timedelta(seconds=30)
"""Time without a report after which any other boot is a successor, whatever its start time."""
CLOCK_SKEW = timedelta(seconds=1)
"""Most by which the clocks of two data planes or relays differ."""
_FIRST = datetime.min.replace(tzinfo=UTC)


class FormerBoot(NamedTuple):
    """A former boot of an instance, as its last report left it.

    `seq` is the number of that report, `at` its arrival time, and `sli` its SLO counts (None if not
    stored).
    """

    seq: int
    at: datetime
    sli: SloCounts | None


def find_former(row: InstanceRow, boot: UUID) -> FormerBoot | None:
    """Return the former boot `boot` from an instance's row; None if the row doesn't have it."""
    stored = row.reported.get("boots", {}).get(str(boot))
    if stored is None:
        return None
    return FormerBoot(stored[0], datetime.fromisoformat(stored[1]), stored[2])


def list_former(row: InstanceRow, boot: UUID) -> dict[str, Any]:
    """Return the earlier process starts to store for an instance whose new start `boot` reports.

    These are the last few, oldest first, ending with the one that the row has now.
    """
    boots: Mapping[str, Any] = row.reported.get("boots", {})
    result = {name: counted for name, counted in boots.items() if name != str(boot)}
    if row.boot not in (None, boot) and row.seq is not None and row.reported_at is not None:
        result.pop(str(row.boot), None)
        result[str(row.boot)] = [row.seq, row.reported_at.isoformat(), row.reported.get("sli")]
    return dict(list(result.items())[-MAX_KEPT:])


def update_former(row: InstanceRow, boot: UUID, former: FormerBoot) -> InstanceRow:
    """Return the row with other counters of the former boot `boot`, in the same place."""
    stored = {**row.reported["boots"], str(boot): [former.seq, former.at.isoformat(), former.sli]}
    return replace(row, reported={**row.reported, "boots": stored})


def is_late(row: InstanceRow, at: datetime) -> bool:
    """Return True if a report received at `at` is older than the last stored report."""
    return row.reported_at is not None and at < row.reported_at - CLOCK_SKEW


def find_start(before: InstanceRow, report: InstanceReport, at: datetime | None) -> datetime | None:
    """Return when a boot that the row doesn't know started to count events, by our clock.

    None if its counts may be included already: it started before the row's last report, or its
    start time is missing or impossible. `sent_at` reveals by how much the instance's clock is
    ahead; if that clock is behind, the result is too early.
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


def record_contest(
    before: InstanceRow, after: InstanceRow, report: InstanceReport, at: datetime, token_id: int
) -> InstanceRow:
    """Return `after`, the row after a report, with the report's token stored.

    In a contest, that is if the report is from a former boot or token while the instance still
    reports, `contested_at` is set too. A report that a relay delivers late is no contest.
    """
    tokens: list[list[str | int]] = list(before.reported.get("tokens", ()))
    silence = None if before.reported_at is None else at - before.reported_at
    is_living = silence is not None and -CLOCK_SKEW <= silence < STILL_REPORTS
    former_uses = {token: datetime.fromisoformat(str(used_at)) for token, used_at in tokens[:-1]}
    used_at = former_uses.get(token_id)
    is_former_token = used_at is not None and at - used_at < TOKEN_RETURNS_WITHIN
    is_contest = is_living and (is_former_token or _is_former_boot(before, report, at))
    if token_id and (after.boot, after.seq) != (before.boot, before.seq):
        others = [each for each in tokens if each[0] != token_id]
        recent = [*others, [token_id, at.isoformat()]][-MAX_TOKENS:]
        after = replace(after, reported={**after.reported, "tokens": recent})
    if is_contest and (before.contested_at is None or at - before.contested_at >= NOTED_EVERY):
        after = replace(after, contested_at=at)
    return after


def is_older(boot: UUID, started_at: datetime | None, row: InstanceRow, at: datetime) -> bool:
    """Return True if `boot` started before the row's boot, and the latter still reports."""
    if row.boot is None or row.started_at is None or started_at is None:
        return False
    if row.reported_at is None or at - row.reported_at >= STILL_REPORTS:
        return False  # `boot` is the successor, and its clock may be behind.
    return (started_at, boot) < (row.started_at, row.boot)


def _is_former_boot(row: InstanceRow, report: InstanceReport, at: datetime) -> bool:
    if row.boot in (None, report.boot):
        return False
    former = find_former(row, report.boot)
    if former is not None:
        return report.seq > former.seq and at - former.at >= OVERLAP
    return is_older(report.boot, report.started_at, row, at)
