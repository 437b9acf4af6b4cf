"""API resources of ramps."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Prefetch

from controlplane.core.actors import label_of
from controlplane.core.approvals.models import Approval
from controlplane.core.canonical import timestamp, timestamp_or_none
from controlplane.core.gates import kinds
from controlplane.core.gates.kinds import GATE_KINDS
from controlplane.core.gates.questions import NO_DATA
from controlplane.core.jobs import stuck_jobs
from controlplane.core.jobs.models import Job, JobEffect, JobStep
from controlplane.core.outbox.models import Attempt, OutboxMessage
from switches.models import Ramp

from . import live_ramps
from .questions import approval_target

STEP_STATES: Mapping[str, str] = {
    JobStep.State.PENDING: "pending",
    JobStep.State.RUNNING: "dwelling",
    JobStep.State.PASSED: "passed",
    JobStep.State.FAILED: "failed",
    JobStep.State.COMPENSATED: "failed",
}
"""Step states of a ramp by job step state."""

ROWS = Ramp.objects.select_related("job", "episode").prefetch_related("job__steps", "job__effects")


@dataclass(frozen=True)
class RampRelations:
    """Ids of pending approvals, and messages, by ramp id."""

    approvals: Mapping[int, int] = field(default_factory=dict)
    messages: Mapping[int, list[OutboxMessage]] = field(default_factory=dict)


def ramp_resource(ramp: Ramp, around: RampRelations, now: datetime) -> dict[str, Any]:
    """Return the API resource of a ramp; `around` has its approvals and messages.

    `stuck` is evaluated at `now`.
    """
    job = ramp.job
    return {
        "id": ramp.pk,
        "switch": ramp.switch_id,
        "episode": ramp.episode_id,
        "state": live_ramps.STATES[job.state],
        "automatic": ramp.automatic,
        "requested_by": label_of(ramp.requested_by_type, ramp.requested_by_name),
        "justification": ramp.justification,
        "overridden": ramp.overridden,
        "plan": ramp.plan,
        "step_index": job.step_index,
        "allow_percent": to_number(live_ramps.get_percent(ramp)),
        "steps": [_build_step(step) for step in list_steps(job)],
        "approval": around.approvals.get(ramp.pk),
        "hold_reason": job.hold_reason,
        "blind_since": timestamp_or_none(ramp.blind_since),
        "heartbeat_at": timestamp_or_none(job.heartbeat_at),
        "stuck": stuck_jobs.is_stuck(job, now),
        "attempts": job.attempts,
        "duplicates_stopped": job.duplicates_stopped,
        "effects": [
            *(
                _build_effect(effect)
                for effect in sorted(job.effects.all(), key=lambda one: one.pk)
            ),
            *(_build_message_effect(message) for message in around.messages.get(ramp.pk, ())),
        ],
        "created_at": timestamp(job.created_at),
        "started_at": timestamp_or_none(job.started_at),
        "paused_at": timestamp_or_none(job.paused_at),
        "finished_at": timestamp_or_none(job.finished_at),
        "compensated_at": timestamp_or_none(job.compensated_at),
        "outcome": job.outcome,
        "error": job.error,
    }


def fetch_related(ramps: Iterable[Ramp]) -> RampRelations:
    """Fetch the approvals and messages that :func:`ramp_resource` needs, in two queries."""
    found = list(ramps)
    return RampRelations(_fetch_approvals(found), _fetch_messages(found))


def get_ramp_resource(ramp_id: int, now: datetime) -> dict[str, Any]:
    ramp = ROWS.get(pk=ramp_id)
    return ramp_resource(ramp, fetch_related([ramp]), now)


def list_steps(job: Job) -> list[JobStep]:
    return sorted(job.steps.all(), key=lambda step: step.index)


def to_number(share: Any) -> float | int:
    percent = float(share)
    return int(percent) if percent.is_integer() else percent


def _build_step(step: JobStep) -> dict[str, Any]:
    return {
        "percent": step.data["percent"],
        "state": STEP_STATES[step.state],
        "attempts": step.attempts,
        "started_at": timestamp_or_none(step.started_at),
        "dwell_seconds": step.data["dwell_seconds"],
        "dwell_until": timestamp_or_none(step.due_at),
        "max_hold_seconds": step.data["max_hold_seconds"],
        "finished_at": timestamp_or_none(step.finished_at),
        "error": step.error,
        "gates": [_build_gate(gate) for gate in step.data["gates"]],
    }


def _build_gate(gate: Mapping[str, Any]) -> dict[str, Any]:
    """Return a gate with its latest result, or its kind's initial verdict if never evaluated."""
    kind = GATE_KINDS.get(gate["type"])
    verdict = kind.initial_verdict if kind else NO_DATA
    return {
        "verdict": verdict,
        "evidence": {},
        "checked_at": None,
        **gate,
        "summary": kinds.describe_gate(gate),
    }


def _build_effect(effect: JobEffect) -> dict[str, Any]:
    return {
        "key": effect.key,
        "name": effect.name,
        "attempted_at": timestamp(effect.attempted_at),
        "done_at": timestamp_or_none(effect.done_at),
    }


def _build_message_effect(message: OutboxMessage) -> dict[str, Any]:
    tries = sorted(message.tries.all(), key=lambda attempt: attempt.number)
    is_sent = message.state == OutboxMessage.State.SENT
    return {
        "key": f"message:{message.pk}",
        "name": message.event,
        "attempted_at": timestamp(tries[0].started_at) if tries else None,
        "done_at": timestamp_or_none(message.finished_at) if is_sent else None,
    }


def _fetch_approvals(ramps: list[Ramp]) -> dict[int, int]:
    """Return ids of pending approvals by ramp id.

    They are of the release, or of the current step's manual gate.
    """
    ramps_by_request = {}
    for ramp in ramps:
        if not ramp.live:
            continue
        if ramp.job.state == Job.State.PENDING:
            ramps_by_request[Approval.Kind.RELEASE, ramp.switch_id] = ramp.pk
        else:
            target = approval_target(ramp, ramp.job.step_index)
            ramps_by_request[Approval.Kind.RAMP_GATE, target] = ramp.pk
    if not ramps_by_request:
        return {}
    waiting = Approval.objects.filter(
        state=Approval.State.PENDING,
        kind__in={kind for kind, _ in ramps_by_request},
        target__in={target for _, target in ramps_by_request},
    )
    pending = {(one.kind, one.target): one.pk for one in waiting}
    return {ramp: pending[asked] for asked, ramp in ramps_by_request.items() if asked in pending}


def _fetch_messages(ramps: list[Ramp]) -> dict[int, list[OutboxMessage]]:
    ids = {ramp.pk for ramp in ramps}
    rows = OutboxMessage.objects.filter(
        subject__in={f"episode:{ramp.episode_id}" for ramp in ramps}, payload__ramp__in=list(ids)
    )
    tries = Prefetch("tries", queryset=Attempt.objects.only("message_id", "number", "started_at"))
    found: dict[int, list[OutboxMessage]] = {}
    for message in rows.order_by("pk").prefetch_related(tries):
        found.setdefault(message.payload["ramp"], []).append(message)
    return found
