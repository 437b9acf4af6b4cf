"""API resources of ramps."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Prefetch
from rest_framework import serializers

from controlplane.core.actors import label_of
from controlplane.core.approvals.models import Approval
from controlplane.core.gates import kinds
from controlplane.core.gates.kinds import GATE_KINDS
from controlplane.core.gates.questions import FAIL, NO_DATA, PASS, WAITING
from controlplane.core.http.resources import PercentField, Resource, TimestampField
from controlplane.core.jobs import stuck_jobs
from controlplane.core.jobs.models import JobEffect, JobStep
from controlplane.core.outbox.models import Attempt, OutboxMessage
from switches.models import Ramp

from . import live_ramps, manual_gates

STATES = (*live_ramps.STATES.values(),)
STEP_STATES: Mapping[str, str] = {
    JobStep.State.PENDING: "pending",
    JobStep.State.RUNNING: "dwelling",
    JobStep.State.PASSED: "passed",
    JobStep.State.FAILED: "failed",
    JobStep.State.COMPENSATED: "failed",
}
"""Step states of a ramp by job step state."""
VERDICTS = (PASS, FAIL, NO_DATA, WAITING)
ROWS = Ramp.objects.select_related("job", "episode").prefetch_related("job__steps", "job__effects")


@dataclass(frozen=True)
class ShownRamp:
    """A ramp with the pending approval and the messages that its API resource shows."""

    ramp: Ramp
    approval: int | None
    messages: Sequence[OutboxMessage]
    now: datetime

    @property
    def state(self) -> str:
        return live_ramps.STATES[self.ramp.job.state]

    @property
    def requested_by(self) -> str:
        return label_of(self.ramp.requested_by_type, self.ramp.requested_by_name)

    @property
    def allow_percent(self) -> Any:
        return live_ramps.get_percent(self.ramp)

    @property
    def steps(self) -> list[JobStep]:
        return sorted(self.ramp.job.steps.all(), key=lambda step: step.index)

    @property
    def stuck(self) -> bool:
        return stuck_jobs.is_stuck(self.ramp.job, self.now)

    @property
    def effects(self) -> list[JobEffect | dict[str, Any]]:
        effects = sorted(self.ramp.job.effects.all(), key=lambda effect: effect.pk)
        return [*effects, *map(_describe_message, self.messages)]


class GateTypeField(serializers.ChoiceField):
    """The name of a gate kind; the choices are the kinds registered when the field is built."""

    def __init__(self, **options: Any) -> None:
        passes = "; ".join(f"`{kind.name}`: {kind.passes_when}" for kind in GATE_KINDS.values())
        super().__init__(list(GATE_KINDS), help_text=f"Passes when … {passes}.", **options)


class StoredNumberField(serializers.FloatField):
    """A number from JSON, rendered as stored: 5 stays an integer."""

    def to_representation(self, value: float) -> Any:
        return value


class StepStateField(serializers.ChoiceField):
    def to_representation(self, state: str) -> str:
        return STEP_STATES[state]


class RampGateShape(Resource[Mapping[str, Any]]):
    """A gate of a plan and its latest result; further fields depend on the gate type."""

    type = GateTypeField()
    summary = serializers.CharField(help_text="Description of the gate.")
    finding = serializers.CharField(
        help_text="The latest result as text; the description before the first."
    )
    verdict = serializers.ChoiceField(VERDICTS)
    evidence = serializers.DictField()
    checked_at = serializers.DateTimeField(allow_null=True)

    def to_representation(self, gate: Mapping[str, Any]) -> dict[str, Any]:
        kind = GATE_KINDS.get(gate["type"])
        unchecked = {"verdict": kind.initial_verdict if kind else NO_DATA, "evidence": {}}
        texts = {"summary": kinds.describe_gate(gate), "finding": kinds.describe_finding(gate)}
        return {**unchecked, "checked_at": None, **gate, **texts}


class RampStepShape(Resource[JobStep]):
    percent = StoredNumberField(source="data.percent", min_value=0.01, max_value=100)
    state = StepStateField(sorted(set(STEP_STATES.values())))
    attempts = serializers.IntegerField()
    started_at = TimestampField(allow_null=True)
    dwell_seconds = StoredNumberField(source="data.dwell_seconds")
    dwell_until = TimestampField(source="due_at", allow_null=True)
    max_hold_seconds = StoredNumberField(source="data.max_hold_seconds")
    finished_at = TimestampField(allow_null=True)
    error = serializers.CharField()
    gates = RampGateShape(many=True, source="data.gates")


class SideEffectShape(Resource[Any]):
    """A publication or message caused by a ramp, unique by its key."""

    key = serializers.CharField()
    name = serializers.CharField()
    attempted_at = TimestampField(allow_null=True)
    done_at = TimestampField(allow_null=True, help_text="Null until known to be done.")


class RampShape(Resource[ShownRamp]):
    id = serializers.IntegerField(source="ramp.pk")
    switch = serializers.CharField(source="ramp.switch_id")
    episode = serializers.IntegerField(source="ramp.episode_id")
    state = serializers.ChoiceField(STATES)
    automatic = serializers.BooleanField(
        source="ramp.automatic", help_text="True if the ramp started at the expiry of its episode."
    )
    requested_by = serializers.CharField()
    justification = serializers.CharField(source="ramp.justification")
    overridden = serializers.ListField(
        source="ramp.overridden",
        child=serializers.CharField(),
        help_text="Safety rules that the release overrode.",
    )
    plan = serializers.ListField(
        source="ramp.plan",
        child=serializers.DictField(),
        help_text="The plan with all defaults filled in.",
    )
    step_index = serializers.IntegerField(
        source="ramp.job.step_index", help_text="Index of the current step, from 0."
    )
    allow_percent = PercentField(help_text="Share allowed now, or at the end of the ramp.")
    steps = RampStepShape(many=True)
    approval = serializers.IntegerField(
        allow_null=True, help_text="Pending approval of the release or of the current manual gate."
    )
    hold_reason = serializers.CharField(source="ramp.job.hold_reason")
    blind_since = TimestampField(
        source="ramp.blind_since",
        allow_null=True,
        help_text="Time since which a gate has had no data past the dwell.",
    )
    heartbeat_at = TimestampField(source="ramp.job.heartbeat_at", allow_null=True)
    stuck = serializers.BooleanField()
    attempts = serializers.IntegerField(source="ramp.job.attempts")
    duplicates_stopped = serializers.IntegerField(
        source="ramp.job.duplicates_stopped",
        help_text="Late or repeated writes that the fence prevented.",
    )
    effects = SideEffectShape(many=True)
    created_at = TimestampField(source="ramp.job.created_at")
    started_at = TimestampField(source="ramp.job.started_at", allow_null=True)
    paused_at = TimestampField(source="ramp.job.paused_at", allow_null=True)
    finished_at = TimestampField(source="ramp.job.finished_at", allow_null=True)
    compensated_at = TimestampField(source="ramp.job.compensated_at", allow_null=True)
    outcome = serializers.CharField(source="ramp.job.outcome")
    error = serializers.CharField(source="ramp.job.error")


class RampActionShape(RampShape):
    """The result of an action on a ramp: the ramp afterwards."""

    dry_run = serializers.BooleanField(required=False, help_text="True if this was a dry run.")


def add_related(ramps: Iterable[Ramp], now: datetime) -> list[ShownRamp]:
    """Return the ramps with their pending approvals and messages, read in two queries."""
    found = list(ramps)
    approvals, messages = _fetch_approvals(found), _fetch_messages(found)
    return [
        ShownRamp(ramp, approvals.get(ramp.pk), messages.get(ramp.pk, ()), now) for ramp in found
    ]


def get_ramp_resource(ramp_id: int, now: datetime) -> dict[str, Any]:
    (shown,) = add_related([ROWS.get(pk=ramp_id)], now)
    return RampShape.render(shown)


def _describe_message(message: OutboxMessage) -> dict[str, Any]:
    first = min(message.tries.all(), key=lambda attempt: attempt.number, default=None)
    return {
        "key": f"message:{message.pk}",
        "name": message.event,
        "attempted_at": first.started_at if first else None,
        "done_at": message.finished_at if message.state == OutboxMessage.State.SENT else None,
    }


def _fetch_approvals(ramps: list[Ramp]) -> dict[int, int]:
    """Return, by ramp id, the id of its pending approval: of the release or a manual gate."""
    requests = {ramp.pk: manual_gates.find_request(ramp) for ramp in ramps}
    ramps_by_request = {request: ramp for ramp, request in requests.items() if request}
    if not ramps_by_request:
        return {}
    waiting = Approval.objects.filter(
        state=Approval.State.PENDING,
        kind__in={kind for kind, _ in ramps_by_request},
        target__in={target for _, target in ramps_by_request},
    )
    pending = {(approval.kind, approval.target): approval.pk for approval in waiting}
    return {
        ramp: pending[request] for request, ramp in ramps_by_request.items() if request in pending
    }


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
