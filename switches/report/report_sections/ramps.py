"""Report section about the week's ramps: outcomes and longest holds."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, F, OuterRef, Q

from controlplane.core import durations
from controlplane.core.actors import label_of
from controlplane.core.audit.models import AuditEntry
from controlplane.core.gates import kinds
from controlplane.core.gates.questions import FAIL, PASS
from controlplane.core.jobs.models import Job, JobStep
from controlplane.core.page_registry import REPORT_SECTIONS, IsOwned, ReportRow, ReportSection
from controlplane.core.team_filter import keep_owned
from switches.models import Ramp
from switches.report.section_rows import MAX_ROWS, pluralize, shorten_reason

HELD = "ramp.held"
GOES_ON = (
    *("ramp.advanced", "ramp.compensated", "ramp.aborted", "ramp.paused"),
    *("switch.released", "switch.engaged", "switch.undone"),
)
"""Audit actions that end a hold."""
WORST_FIRST = ("failed", "compensated", "aborted", "replaced", "under way", "completed")
NOTHING = timedelta()
# Compensated by a gate or error; an abort by a person leaves the step in another state.
_COMPENSATED = Exists(
    JobStep.objects.filter(
        job=OuterRef("job"), index=OuterRef("job__step_index"), state=JobStep.State.FAILED
    )
)


@REPORT_SECTIONS.add(45)
def ramps_section(
    start: datetime, end: datetime, now: datetime, is_owned: IsOwned = None
) -> ReportSection:
    at = min(end, now)
    not_over_before = Q(job__finished_at=None) | Q(job__finished_at__gte=start)
    touched = Ramp.objects.filter(not_over_before, job__started_at__lt=at).select_related("job")
    touched = keep_owned(touched, "switch_id", is_owned)
    found = list(touched.annotate(is_compensated=_COMPENSATED).order_by("-pk"))
    outcomes = {ramp.pk: _get_outcome(ramp, at) for ramp in found}
    held = _longest_holds(found, at)
    ranked = sorted(found, key=lambda ramp: WORST_FIRST.index(outcomes[ramp.pk]))[:MAX_ROWS]
    gates = _gates_in_the_way([ramp for ramp in ranked if outcomes[ramp.pk] == "compensated"])
    begun = sum(ramp.job.started_at is not None and ramp.job.started_at >= start for ramp in found)
    counts = Counter(outcomes.values())
    return ReportSection(
        slug="ramps",
        title="Ramps",
        summary=_summarize(begun, counts, max(held.values(), default=NOTHING)),
        tone="bad" if counts["failed"] else "warn" if counts["compensated"] else "good",
        columns=("switch", "outcome", "why", "gate", "by", "began_at", "ended_at", "held_seconds"),
        rows=tuple(
            _build_row(ramp, outcomes[ramp.pk], gates.get(ramp.pk, ""), held.get(ramp.pk), at)
            for ramp in ranked
        ),
        total=len(found),
        headline=f"{pluralize(counts['failed'], 'ramp')} failed"
        if counts["failed"]
        else f"{pluralize(counts['compensated'], 'ramp')} ended by a gate",
    )


def _build_row(
    ramp: Ramp, outcome: str, gates: str, held: timedelta | None, at: datetime
) -> ReportRow:
    job = ramp.job
    is_over = job.finished_at is not None and job.finished_at < at
    return ReportRow(
        {
            "switch": ramp.switch_id,
            "outcome": outcome if is_over else f"{outcome}, step {job.step_index + 1}",
            "why": shorten_reason(
                job.outcome if is_over else job.hold_reason or ramp.justification
            ),
            "gate": gates,
            "by": label_of(ramp.requested_by_type, ramp.requested_by_name),
            "began_at": job.started_at,
            "ended_at": job.finished_at if is_over else None,
            "held_seconds": int(held.total_seconds()) if held else None,
        },
        f"/ramps/{ramp.pk}/",
    )


def _get_outcome(ramp: Any, at: datetime) -> str:
    """Return a ramp's outcome as of `at`; `replaced` if another engage or release ended it."""
    job = ramp.job
    if job.finished_at is None or job.finished_at >= at:
        return "under way"
    if job.state == Job.State.FAILED:
        return "failed"
    if job.state == Job.State.COMPLETED:
        return "completed"
    if ramp.is_compensated:
        return "compensated"
    return "aborted" if job.compensated_at else "replaced"


def _summarize(begun: int, counts: Mapping[str, int], longest: timedelta) -> str:
    if not counts:
        return "No ramps."
    outcomes = ", ".join(
        f"{counts[name]:,} {name}" for name in WORST_FIRST[::-1] if counts.get(name)
    )
    held = f" The longest hold: {durations.format_readable(longest)}." if longest else ""
    return f"{pluralize(begun, 'ramp')} began; {outcomes}.{held}"


def _gates_in_the_way(ramps: Sequence[Ramp]) -> Mapping[int, str]:
    by_ramp: dict[int, str] = {}
    if not ramps:
        return by_ramp
    steps = JobStep.objects.filter(job__in=[ramp.pk for ramp in ramps], index=F("job__step_index"))
    for step in steps:
        not_passed = [gate for gate in step.data["gates"] if gate.get("verdict", PASS) != PASS]
        failing = [gate for gate in not_passed if gate["verdict"] == FAIL]
        by_ramp[step.job_id] = "; ".join(
            kinds.describe_finding(gate) for gate in failing or not_passed
        )
    return by_ramp


def _longest_holds(ramps: Sequence[Ramp], at: datetime) -> Mapping[int, timedelta]:
    if not ramps:
        return {}
    since = min((ramp.job.started_at for ramp in ramps if ramp.job.started_at), default=at)
    entries = AuditEntry.objects.filter(at__gte=since, at__lt=at)
    holds = list(entries.filter(action=HELD).order_by("id").values_list("target", "id", "at"))
    ends: dict[str, list[tuple[int, datetime]]] = defaultdict(list)
    targets = {target for target, _, _ in holds}  # If empty, Django runs no query.
    rows = entries.filter(action__in=GOES_ON, target__in=targets).order_by("id")
    for target, entry, moment in rows.values_list("target", "id", "at"):
        ends[target].append((entry, moment))
    of_switch = defaultdict(list)
    for ramp in ramps[::-1]:
        of_switch[ramp.switch_id].append(ramp)
    found: dict[int, timedelta] = {}
    for target, entry, began in holds:
        place = bisect_right(ends[target], (entry, began))
        until = ends[target][place][1] if place < len(ends[target]) else at
        held = [ramp for ramp in of_switch[target] if (ramp.job.started_at or at) <= began]
        if held:
            found[held[-1].pk] = max(found.get(held[-1].pk, NOTHING), until - began)
    return found
