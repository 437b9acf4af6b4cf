"""Detect two processes, or two tokens, that report as one instance at the same time. Pure.

A restart or a new token is no contest, because the former process or token stays silent. A contest
is a former one that reports again while its successor also does.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from . import boots
from .instance_rows import InstanceReport, InstanceRow

MAX_TOKENS = 3
"""Most recent tokens remembered per instance."""
OVERLAP = timedelta(seconds=10)
"""Grace period for the last report of a process after the first of its successor."""
TOKEN_RETURNS_WITHIN = timedelta(minutes=5)
"""Window for a contest of tokens; a former token that returns later is a change undone."""
NOTED_EVERY = timedelta(minutes=1)
STILL_REPORTS = timedelta(seconds=30)
"""Silence after which any other boot succeeds this one, whatever their clocks show."""


def noted(
    before: InstanceRow, after: InstanceRow, report: InstanceReport, at: datetime, token_id: int
) -> InstanceRow:
    """Return `after` with the report's token, and with `contested_at` if this is a contest.

    `after` is `before` merged with the report, received at `at`. A contest is recorded at most once
    a minute.
    """
    tokens: list[list[str | int]] = list(before.reported.get("tokens", ()))
    is_living = before.reported_at is not None and at - before.reported_at < STILL_REPORTS
    is_contest = is_living and (
        _is_former_boot(before, report, at) or _is_former_token(tokens, token_id, at)
    )
    if token_id and (after.boot, after.seq) != (before.boot, before.seq):
        others = [each for each in tokens if each[0] != token_id]
        seen = [*others, [token_id, at.isoformat()]][-MAX_TOKENS:]
        after = replace(after, reported={**after.reported, "tokens": seen})
    if is_contest and (before.contested_at is None or at - before.contested_at >= NOTED_EVERY):
        after = replace(after, contested_at=at)
    return after


def is_older(boot: UUID, started_at: datetime | None, row: InstanceRow, at: datetime) -> bool:
    """Return True if `boot` started before the row's boot, which still reports.

    A boot without a start time doesn't count as older.
    """
    if row.boot is None or row.started_at is None or started_at is None:
        return False
    if row.reported_at is None or at - row.reported_at >= STILL_REPORTS:
        return False  # The new clock may be behind, but only that boot reports.
    return (started_at, boot) < (row.started_at, row.boot)


def _is_former_boot(row: InstanceRow, report: InstanceReport, at: datetime) -> bool:
    if row.boot in (None, report.boot):
        return False
    former = boots.find_former(row, report.boot)
    if former is not None:
        return report.seq > former.seq and at - former.at >= OVERLAP
    return is_older(report.boot, report.started_at, row, at)


def _is_former_token(tokens: list[list[str | int]], token_id: int, at: datetime) -> bool:
    seen = {token: datetime.fromisoformat(str(when)) for token, when in tokens[:-1]}
    return token_id in seen and at - seen[token_id] < TOKEN_RETURNS_WITHIN
