"""Reports: parsed strictly, and merged into an instance's row. Pure.

Counters are cumulative per `boot`, so a lost report loses nothing and a repeated one adds nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from controlplane.core.instances import rates

from . import (
    boots,
    breaker_reports,
    contests,
    slo_events,
    transition_limits,
)
from .instance_rows import InstanceReport, InstanceRow
from .report_fields import read
from .slo_events import Events

MAX_SWITCHES = 1000
"""Most switches whose counts are kept per instance; the most recently checked ones."""
REMEMBERED = 62
"""Number of reports before a boot's newest one that are recognized when repeated."""


def parse(document: Mapping[str, Any]) -> InstanceReport:
    """Return the report in a JSON object; raise :class:`InvalidInput`, naming each wrong field.

    Unknown fields are refused too: a misspelt one would lose what it tells.
    """
    document, dropped = transition_limits.bounded(document)
    fields = read(document)
    breakers, bulkheads = fields.get("breakers"), fields.get("bulkheads")
    return InstanceReport(
        service=fields["service"],
        instance=fields["instance"],
        boot=fields["boot"],
        seq=fields["seq"],
        started_at=fields.get("started_at"),
        sent_at=fields.get("sent_at"),
        applied_version=fields.get("applied_version"),
        config_version=fields.get("config_version"),
        checks={
            each["switch"]: (each["allowed"], each["blocked"])
            for each in fields.get("checks") or ()
        },
        sli={each["slo"]: (each["good"], each["total"]) for each in fields.get("sli") or ()},
        breakers=None if breakers is None else breaker_reports.breakers(breakers),
        bulkheads=None if bulkheads is None else breaker_reports.bulkheads(bulkheads),
        steps=breaker_reports.steps(breakers or ()),
        dropped=dropped,
    )


def merge(
    row: InstanceRow, report: InstanceReport, at: datetime, epoch: UUID | None, token_id: int = 0
) -> tuple[InstanceRow, bool]:
    """Return the row after a report received at `at` (aware), and True if it is a duplicate.

    The report's version belongs to `epoch`, unless this boot has applied that number before; None
    if there is no epoch yet. A duplicate, an older report of this boot and any report of an older
    boot change nothing but `contested_at`. The check counts of a boot that returns, or that has no
    start time, add nothing at first, because they may have been counted already.
    """
    merged, duplicate = _merge(row, report, at, epoch)
    return contests.noted(row, merged, report, at, token_id), duplicate


def _merge(
    row: InstanceRow, report: InstanceReport, at: datetime, epoch: UUID | None
) -> tuple[InstanceRow, bool]:
    # A clock that was ahead must not lock out later boots.
    started_at = None if report.started_at is None else min(report.started_at, at)
    back, former = boots.find_former(row, report.boot), boots.keep_former(row, report.boot)
    if row.boot == report.boot and row.seq is not None:
        if report.seq <= row.seq:
            return _late(row, report.seq)
        known, since = row.reported, row.reported_at
        started_at = row.started_at or started_at
        bits = (known.get("seqs", 1) << min(report.seq - row.seq, REMEMBERED + 1)) | 1
    elif contests.is_older(report.boot, started_at, row, at):
        return row, False
    elif back is not None and report.seq <= back.seq:
        return row, report.seq == back.seq
    else:
        known = {"checks": report.checks} if started_at is None or back else {}
        known["sli"] = (back.sli if back else None) or {}
        since, bits = started_at, 1
        row = replace(row, applied_epoch=None, applied_version=None, applied_at=at)
    before, counted = known.get("checks", {}), known.get("sli", {})
    merged = replace(
        row,
        boot=report.boot,
        started_at=started_at,
        seq=report.seq,
        reported_at=at,
        heard_at=max(at, row.heard_at or at),
        config_version=report.config_version,
        reported={
            "checks": _newest({**before, **{key: list(n) for key, n in report.checks.items()}}),
            "sli": slo_events.merge_counts(counted, report.sli),
            "boots": former,
            "seqs": bits & ((1 << (REMEMBERED + 1)) - 1),
        },
        checks=_counted(row.checks, before, report.checks, at, since),
        resilience=breaker_reports.merge_document(
            row.resilience if row.boot == report.boot else {}, report
        ),
    )
    if report.applied_version == row.applied_version and row.applied_epoch is not None:
        epoch = row.applied_epoch
    if epoch is not None and report.applied_version is not None and not _is_later(row, at):
        merged = replace(
            merged, applied_epoch=epoch, applied_version=report.applied_version, applied_at=at
        )
    return merged, False


def add_calls(
    row: InstanceRow, counts: Mapping[str, Sequence[int]], at: datetime, since: datetime
) -> InstanceRow:
    """Return the row after `/check` calls between `since` and `at`.

    `counts` maps switch id to (allowed, blocked).
    """
    return replace(row, checks=_counted(row.checks, {}, counts, at, since))


def events(
    before: InstanceRow, after: InstanceRow, report: InstanceReport, services: Sequence[str] = ()
) -> list[Events]:
    """Return what the report adds to the counts of SLOs.

    `after` is the result of :func:`merge` on `before`. The sending token is limited to `services`,
    if there are any. The events happened since this boot's previous report, or since its start for
    its first one. If that is unknown, nothing is counted: see :func:`boots.find_start`.
    """
    if not report.sli or (after.boot, after.seq) == (before.boot, before.seq):
        return []
    ended_at = after.reported_at
    if before.boot == report.boot:
        known, began_at = before.reported.get("sli"), before.reported_at
    elif back := boots.find_former(before, report.boot):
        known, began_at = back.sli, back.at
    else:
        known, began_at = {}, boots.find_start(before, report, ended_at)
    if known is None or began_at is None or ended_at is None:
        return []
    began_at = min(began_at, ended_at)
    return [
        Events(slo, after.id, began_at, ended_at, good, total, services)
        for slo, good, total in slo_events.find_growth(known, after.reported["sli"])
    ]


def _late(row: InstanceRow, seq: int) -> tuple[InstanceRow, bool]:
    """Remember a report older than the newest one, so that it is accepted only once."""
    assert row.seq is not None  # noqa: S101 - for the type; the caller has looked.
    back = row.seq - seq
    bits = row.reported.get("seqs", 1)
    if back > REMEMBERED:
        return row, False
    if bits >> back & 1:
        return row, True
    return replace(row, reported={**row.reported, "seqs": bits | 1 << back}), False


def _is_later(row: InstanceRow, at: datetime) -> bool:
    """Return True if the version known from a poll is newer than a report of `at`."""
    return row.applied_at is not None and row.applied_at > at


def _counted(
    checks: Mapping[str, rates.Entry],
    before: Mapping[str, Any],
    counts: Mapping[str, Sequence[int]],
    at: datetime,
    since: datetime | None,
) -> Mapping[str, rates.Entry]:
    """Return the entries with the increments from `before` to `counts`."""
    result = dict(checks)
    for switch, (allowed, blocked) in counts.items():
        allowed_before, blocked_before = before.get(switch, (0, 0))
        more = max(0, allowed - allowed_before), max(0, blocked - blocked_before)
        if any(more) or switch not in result:
            entry = rates.add_calls(result.pop(switch, None), *more, at, since)
            result[switch] = entry
    if len(result) > MAX_SWITCHES:
        kept = sorted(result, key=lambda switch: result[switch]["seen"], reverse=True)
        result = {switch: result[switch] for switch in kept[:MAX_SWITCHES]}
    return result


def _newest(counts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the last of `counts`, where the newest report's switches come last."""
    return dict(list(counts.items())[-MAX_SWITCHES:])
