"""Parses reports and merges them into the rows of instances. Pure.

Counters are cumulative since the boot, so a lost report loses no counts and a repeated one adds
none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from controlplane.core.instances import rates

from . import boots, breaker_reports
from .boots import FormerBoot
from .instance_rows import InstanceReport, InstanceRow, SloCounts, SloEvents
from .report_fields import validate_report

Document = Mapping[str, Any]
MAX_SWITCHES = 1000
"""Most switches with counts per instance; the least recently checked ones are dropped."""
MAX_PER_BREAKER = 100
"""Most transitions of one breaker in a report; those with the highest numbers are kept."""
MAX_TRANSITIONS = 2000
"""Most transitions of one report, so that parsing doesn't delay other requests."""
MAX_SLOS = 200
"""Most SLOs per boot. Further SLOs are ignored: replacing a stored SLO could count it twice."""
REMEMBERED = 62
"""Number of earlier reports of a boot that are recognized as duplicates."""


def parse_report(document: Mapping[str, Any]) -> InstanceReport:
    """Return the report in `document`; raise :class:`InvalidInput`, also for unknown fields."""
    limited, dropped = limit_transitions(document)
    fields = validate_report(limited)
    breakers, bulkheads = fields.pop("breakers", None), fields.pop("bulkheads", None)
    checks, sli = fields.pop("checks", ()), fields.pop("sli", ())
    return InstanceReport(
        **fields,
        checks={each["switch"]: (each["allowed"], each["blocked"]) for each in checks},
        sli={each["slo"]: (each["good"], each["total"]) for each in sli},
        breakers=None if breakers is None else breaker_reports.list_breakers(breakers),
        bulkheads=None if bulkheads is None else breaker_reports.list_bulkheads(bulkheads),
        steps=breaker_reports.list_transitions(breakers or ()),
        dropped=dropped,
        document=document,
    )


def merge_report(
    row: InstanceRow,
    report: InstanceReport,
    at: datetime,
    epoch: UUID | None,
    token_id: int = 0,
    relay: str = "",
) -> tuple[InstanceRow, bool]:
    """Return the row after a report received at `at` (aware), and True if it is a duplicate.

    A duplicate, an earlier report of this boot, and a report of an older boot change only
    `contested_at`. The first report of a returning boot, or of a boot without a start time, adds no
    check counts, because they may have been added already. A report of another boot that a relay
    received before the last stored report, and delivers late, changes only the counters of that
    boot.

    A final report marks the instance as stopped until it polls or reports again.

    The snapshot version in the report belongs to `epoch` (None without one). If this boot reported
    the same version before, the stored epoch is kept. `relay` is the name of the relay that
    received the report, "" for a data plane.
    """
    merged, duplicate = _merge(row, report, at, epoch)
    if merged.reported_at != row.reported_at and merged.heard_at == at:
        merged = replace(merged, relay=relay)
    return boots.record_contest(row, merged, report, at, token_id), duplicate


def _merge(
    row: InstanceRow, report: InstanceReport, at: datetime, epoch: UUID | None
) -> tuple[InstanceRow, bool]:
    # Later boots must not count as older because this boot's clock was ahead.
    started_at = None if report.started_at is None else min(report.started_at, at)
    returning, former = boots.find_former(row, report.boot), boots.list_former(row, report.boot)
    if row.boot == report.boot and row.seq is not None:
        if report.seq <= row.seq:  # A late report: only record that it was received.
            age, received = row.seq - report.seq, row.reported.get("seqs", 1)
            if age > REMEMBERED:
                return row, False
            if received >> age & 1:
                return row, True
            return replace(row, reported={**row.reported, "seqs": received | 1 << age}), False
        known, since = row.reported, row.reported_at
        started_at = row.started_at or started_at
        bits = (known.get("seqs", 1) << min(report.seq - row.seq, REMEMBERED + 1)) | 1
    elif boots.is_late(row, at) and returning is not None and report.seq > returning.seq:
        counted = _merge_slo_counts(returning.sli or {}, report.sli)
        return boots.update_former(row, report.boot, FormerBoot(report.seq, at, counted)), False
    elif boots.is_older(report.boot, started_at, row, at):
        return row, False
    elif returning is not None and report.seq <= returning.seq:
        return row, report.seq == returning.seq
    elif boots.is_late(row, at):
        return row, False
    else:
        known = {"checks": report.checks} if started_at is None or returning else {}
        known["sli"] = (returning.sli if returning else None) or {}
        since, bits = started_at, 1
        row = replace(row, applied_epoch=None, applied_version=None, applied_at=at)
    before, counted = known.get("checks", {}), known.get("sli", {})
    checks = {**before, **{key: list(n) for key, n in report.checks.items()}}
    heard_at = max(at, row.heard_at or at)
    merged = replace(
        row,
        boot=report.boot,
        started_at=started_at,
        seq=report.seq,
        reported_at=at,
        heard_at=heard_at,
        stopped_at=heard_at if report.is_final else None,
        config_version=report.config_version,
        reported={
            "checks": dict(list(checks.items())[-MAX_SWITCHES:]),
            "sli": _merge_slo_counts(counted, report.sli),
            "boots": former,
            "seqs": bits & ((1 << (REMEMBERED + 1)) - 1),
        },
        checks=_add_increments(row.checks, before, report.checks, at, since),
        resilience=breaker_reports.merge_document(
            row.resilience if row.boot == report.boot else {}, report
        ),
    )
    if report.applied_version == row.applied_version and row.applied_epoch is not None:
        epoch = row.applied_epoch
    is_outdated = row.applied_at is not None and row.applied_at > at
    if epoch is not None and report.applied_version is not None and not is_outdated:
        merged = replace(
            merged, applied_epoch=epoch, applied_version=report.applied_version, applied_at=at
        )
    return merged, False


def add_calls(
    row: InstanceRow, counts: Mapping[str, Sequence[int]], at: datetime, since: datetime
) -> InstanceRow:
    """Return an instance's row with its `/check` requests between `since` and `at` added.

    `counts` maps switch ids to (allowed, blocked).
    """
    return replace(row, checks=_add_increments(row.checks, {}, counts, at, since))


def list_new_events(
    before: InstanceRow, after: InstanceRow, report: InstanceReport, services: Sequence[str] = ()
) -> list[SloEvents]:
    """Return the SLO counts that a report adds; `after` is `before` merged with the report.

    The counts cover the time since the boot's previous report, or for its first report the time
    since its start. If that time is uncertain, the list is empty. An SLO with a decreased counter
    is left out. `services` are the services that the token is limited to; empty if it is not
    limited.
    """
    former, returning = (boots.find_former(row, report.boot) for row in (after, before))
    is_same = (after.boot, after.seq, former) == (before.boot, before.seq, returning)
    if not report.sli or is_same:
        return []
    ended_at, counted = after.reported_at, after.reported.get("sli", {})
    if former is not None:  # Delivered late: another boot is the current one.
        ended_at, counted = former.at, former.sli or {}
    if before.boot == report.boot:
        known, began_at = before.reported.get("sli"), before.reported_at
    elif returning is not None:
        known, began_at = returning.sli, returning.at
    else:
        known, began_at = {}, boots.find_start(before, report, ended_at)
    if known is None or began_at is None or ended_at is None:
        return []
    events, span = [], (min(began_at, ended_at), ended_at)
    for slo, (good, total) in counted.items():
        good_before, total_before = known.get(slo, (0, 0))
        more_good, more = good - good_before, total - total_before
        if more > 0 and 0 <= more_good <= more:
            events.append(SloEvents(slo, after.id, *span, more_good, more, services))
    return events


def _add_increments(
    checks: Mapping[str, rates.Entry],
    before: Mapping[str, Any],
    counts: Mapping[str, Sequence[int]],
    at: datetime,
    since: datetime | None,
) -> Mapping[str, rates.Entry]:
    result = dict(checks)
    for switch, (allowed, blocked) in counts.items():
        allowed_before, blocked_before = before.get(switch, (0, 0))
        more = max(0, allowed - allowed_before), max(0, blocked - blocked_before)
        if any(more) or switch not in result:
            entry = rates.add_calls(result.pop(switch, None), *more, at, since)
            result[switch] = entry
    if len(result) > MAX_SWITCHES:
        newest = sorted(result, key=lambda switch: result[switch]["seen"], reverse=True)
        result = {switch: result[switch] for switch in newest[:MAX_SWITCHES]}
    return result


def _merge_slo_counts(before: SloCounts, counts: SloCounts) -> dict[str, list[int]]:
    result = {slo: list(numbers) for slo, numbers in before.items()}
    for slo, numbers in counts.items():
        if slo in result or len(result) < MAX_SLOS:
            result[slo] = list(numbers)
    return result


def limit_transitions(document: Document) -> tuple[Document, int]:
    """Return the report without transitions above the limits, and how many were removed.

    A report above the limits is truncated, not refused: an instance that could not report for long
    must be able to report again. Invalid parts are left for the validator to refuse.
    """
    breakers = document.get("breakers")
    if not isinstance(breakers, list):
        return document, 0
    found = [one.get("transitions") if isinstance(one, dict) else None for one in breakers]
    numbers = [len(each) if isinstance(each, list) else 0 for each in found]
    most = MAX_PER_BREAKER
    if sum(min(number, most) for number in numbers) > MAX_TRANSITIONS:
        most = max(1, MAX_TRANSITIONS // sum(number > 0 for number in numbers))
    dropped = sum(max(0, number - most) for number in numbers)
    if not dropped:
        return document, 0
    less = [
        {**one, "transitions": sorted(one["transitions"], key=_sort_key)[-most:]}
        if number > most
        else one
        for one, number in zip(breakers, numbers, strict=True)
    ]
    return {**document, "breakers": less}, dropped


def _sort_key(step: Any) -> float:
    """Return a transition's number; an invalid one sorts last, so that validation refuses it."""
    number = step.get("n") if isinstance(step, dict) else None
    return number if type(number) is int else float("inf")
