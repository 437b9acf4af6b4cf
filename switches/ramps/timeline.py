"""Timeline of a ramp for its page: steps, gate results and the pending approval."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F

from controlplane.core.approvals.models import Approval
from controlplane.core.freshness import Freshness, assess_freshness
from controlplane.core.gates import kinds
from controlplane.core.gates.kinds import GATE_KINDS
from controlplane.core.gates.questions import FAIL, NO_DATA, PASS, WAITING
from controlplane.core.gates.verdicts import FRESH
from controlplane.core.jobs import stuck_jobs
from controlplane.core.jobs.models import Job, JobStep
from switches.models import Episode, Ramp, Switch

from . import descriptions, live_ramps, manual_gates

SHOWN_AFTER_END = timedelta(hours=24)
FAST_POLL_SECONDS, POLL_SECONDS = 1, 2
FAST_POLL_BEFORE = timedelta(seconds=20)
VERDICT_WORDS = {
    PASS: "pass",
    FAIL: "fail",
    NO_DATA: "without data",
    WAITING: "waiting",
    "": "not checked yet",
}


@dataclass(frozen=True)
class StepLine:
    """A step in a ramp's timeline; `rest` is the dwell that was left when the ramp was paused."""

    row: JobStep
    state: str
    is_present: bool
    gates: Sequence[Mapping[str, Any]]
    rest: timedelta | None

    @property
    def number(self) -> int:
        return self.row.index + 1

    @property
    def verdicts(self) -> str:
        """Return the number of gates with each verdict as text: `2 pass, 1 without data`."""
        counts = Counter(gate["verdict"] for gate in self.gates)
        return ", ".join(
            f"{n} {VERDICT_WORDS.get(verdict, verdict)}" for verdict, n in counts.items()
        )

    @property
    def can_fail(self) -> bool:
        """Return True if a gate of the step can fail by itself."""
        return any(gate["can_fail"] for gate in self.gates)

    @property
    def blocking(self) -> list[Mapping[str, Any]]:
        """Return the gates that have not passed."""
        return [gate for gate in self.gates if gate["verdict"] != PASS]


@dataclass(frozen=True)
class Timeline:
    """A ramp with its steps for its page; `share` is the percentage allowed now, or at its end.

    `is_released_at_once` is True if an immediate release of the switch ended the ramp. The page
    polls every `pace_seconds`.
    """

    ramp: Ramp
    job: Job
    state: str
    share: Any
    is_released_at_once: bool
    steps: Sequence[StepLine]
    approval: Approval | None
    is_stuck: bool
    pace_seconds: int

    @property
    def present(self) -> StepLine:
        return self.steps[self.job.step_index]

    @property
    def next(self) -> StepLine | None:
        index = self.job.step_index + 1
        return self.steps[index] if index < len(self.steps) else None

    @property
    def look(self) -> str:
        """Return the state by which templates color the ramp."""
        return "completed" if self.is_released_at_once else self.state

    @property
    def flows(self) -> bool:
        """Return True while the ramp decides how much traffic is allowed."""
        return self.ramp.live and self.state != "pending_approval"

    @property
    def may_advance(self) -> bool:
        return self.state in {"running", "holding"}

    @property
    def share_label(self) -> str:
        """Return what the share is: allowed now, at the end, or none."""
        if self.state == "pending_approval":
            return "allowed now; starts when approved"
        if self.ramp.live:
            return "allowed now"
        if self.state == "completed":
            return "allowed at the end"
        if self.is_released_at_once:
            return "allowed: released at once"
        return "Stopped; switch engaged again" if self.job.started_at else "Never started"

    @property
    def outcome_heading(self) -> str:
        """Return how the ramp ended; empty if its outcome says that itself."""
        if self.state == "completed":
            return "Released."
        if self.is_released_at_once:
            return "Ended early."
        return "" if descriptions.ABORTED_BY.match(self.job.outcome) else "Aborted."

    @property
    def gate_warning(self) -> str:
        """Return a warning if no gate of the live ramp can fail now; empty if one can."""
        if not self.ramp.live:
            return ""
        left = self.steps[self.job.step_index :]
        if any(step.can_fail for step in left):
            if self.present.can_fail:
                return ""
            return f"Step {self.present.number} has no gate that can fail."
        if any(step.gates for step in left):
            return "No gate of this ramp can fail."
        return "No gates: only time advances this ramp."


def build_timeline(ramp: Ramp, now: datetime) -> Timeline:
    """Return the timeline of a ramp that was fetched with its job and episode."""
    job = ramp.job
    state = live_ramps.STATES[job.state]
    rows = {row.index: row for row in JobStep.objects.filter(job=job).order_by("index")}
    due_at = rows[job.step_index].due_at
    is_due_soon = due_at is not None and due_at - now < FAST_POLL_BEFORE
    return Timeline(
        ramp=ramp,
        job=job,
        state=state,
        share=live_ramps.get_percent(ramp),
        is_released_at_once=live_ramps.was_released_at_once(ramp),
        steps=[_build_step(ramp, state, row, now) for row in rows.values()],
        approval=_find_approval(ramp, now),
        is_stuck=stuck_jobs.is_stuck(job, now),
        pace_seconds=FAST_POLL_SECONDS if is_due_soon else POLL_SECONDS,
    )


def find_timeline(switch: Switch, episode: Episode | None, now: datetime) -> Timeline | None:
    """Return the timeline for a switch's page, or None.

    It shows the live ramp, else the last one if it belongs to `episode` or ended in the last 24
    hours.
    """
    found = Ramp.objects.filter(switch_id=switch.pk).select_related("job", "episode")
    ramp = found.order_by("-live", "-job_id").first()
    if ramp is None:
        return None
    is_of_now = episode is not None and ramp.episode_id == episode.pk
    ended_at = ramp.job.finished_at
    if ramp.live or is_of_now or (ended_at is not None and now - ended_at < SHOWN_AFTER_END):
        return build_timeline(ramp, now)
    return None


def summarize_live_ramps(switch_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the live ramps of these switches for switchboard rows, by switch id."""
    rows = JobStep.objects.filter(
        job__ramp__live=True, job__ramp__switch_id__in=switch_ids, index=F("job__step_index")
    ).select_related("job__ramp")
    return {
        row.job.ramp.switch_id: {
            "pk": row.job_id,
            "state": live_ramps.STATES[row.job.state],
            "number": row.index + 1,
            "steps": len(row.job.ramp.plan),
            "due_at": row.due_at,
            "is_counting": row.job.state == Job.State.RUNNING and row.due_at is not None,
        }
        for row in rows
    }


def _build_step(ramp: Ramp, state: str, row: JobStep, now: datetime) -> StepLine:
    is_present = row.index == ramp.job.step_index
    paused_at = ramp.job.paused_at if is_present and state == "paused" else None
    return StepLine(
        row=row,
        state=_step_state(row, state, ramp),
        is_present=is_present,
        gates=[
            {
                **_build_gate(ramp, row.index, *each),
                "freshness": _assess_gate(ramp, each[1], now)
                if ramp.live and row.state == JobStep.State.RUNNING and each[1].get("verdict")
                else None,
            }
            for each in enumerate(row.data["gates"])
        ],
        rest=max(row.due_at - paused_at, timedelta()) if row.due_at and paused_at else None,
    )


def _step_state(row: JobStep, state: str, ramp: Ramp) -> str:
    if row.state == JobStep.State.RUNNING:
        return state if state in {"holding", "paused", "failed"} else "dwelling"
    if row.state == JobStep.State.PENDING and not ramp.live:
        return "never"
    if row.state == JobStep.State.COMPENSATED and live_ramps.was_released_at_once(ramp):
        return "released"
    return str(row.state)


def _build_gate(ramp: Ramp, index: int, number: int, gate: Mapping[str, Any]) -> dict[str, Any]:
    evidence = gate.get("evidence") or {}
    checked_at = gate.get("checked_at")
    return {
        "pk": f"gate-{ramp.pk}-{index}-{number}",
        "finding": kinds.describe_finding(gate),
        "verdict": gate.get("verdict", ""),
        "can_fail": (kind := GATE_KINDS.get(gate["type"])) is not None and kind.can_fail,
        "evidence": evidence,
        "checked_at": datetime.fromisoformat(checked_at) if checked_at else None,
    }


def _assess_gate(ramp: Ramp, gate: Mapping[str, Any], now: datetime) -> Freshness:
    """Return the freshness of the evidence of a gate that is being evaluated.

    Unchanged evidence isn't stored again, so it is as recent as the ramp's last evaluation, unless
    an observation has a time of its own.
    """
    observed_at = (gate.get("evidence") or {}).get("observed_at")
    at = datetime.fromisoformat(observed_at) if observed_at else ramp.job.heartbeat_at
    return assess_freshness(at, FRESH, now)


def _find_approval(ramp: Ramp, now: datetime) -> Approval | None:
    if (request := manual_gates.find_request(ramp)) is None:
        return None
    kind, target = request
    waiting = Approval.objects.filter(state=Approval.State.PENDING, expires_at__gt=now)
    return waiting.filter(kind=kind, target=target).order_by("-id").first()
