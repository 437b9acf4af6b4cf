"""Manual gates: a ramp waits until a person approves that it advances."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from controlplane.core import durations, reasons
from controlplane.core.actors import Actor
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.canonical import timestamp
from controlplane.core.errors import Conflict
from controlplane.core.gates.fields import DURATION, GateField, whole_number_between
from controlplane.core.gates.kinds import GateKind
from controlplane.core.gates.questions import FAIL, PASS, WAITING, GateAnswer, GateQuestion
from controlplane.core.gates.verdicts import get_explanation
from controlplane.core.jobs.models import Job
from switches import publication
from switches.blast import risk_facts
from switches.models import Ramp
from switches.scopes import GLOBAL_ID

from . import descriptions
from .plan import MAX_DWELL_SECONDS
from .questions import approval_target

APPROVAL_SECONDS = 2 * 3600
NOT_YET = GateAnswer(WAITING, {"why": "a person decides at the end of the step"})


def request_approval(ramp: Ramp, index: int, now: datetime) -> None:
    """Request the approval for a step's manual gate; the ramp's requester can't give it.

    Do nothing if the step has no such gate, or already has a request that is not void.
    """
    spec = next((gate for gate in ramp.plan[index]["gates"] if gate["type"] == KIND.name), None)
    if spec is None:
        return
    target = approval_target(ramp, index)
    earlier = Approval.objects.filter(kind=Approval.Kind.RAMP_GATE, target=target)
    if earlier.exclude(state=Approval.State.VOID).exists():
        return
    shares = [descriptions.format_percent(step["percent"]) for step in ramp.plan[index:]]
    then = f"advance to {shares[1]}" if shares[1:] else "release it"
    kind: Any = ramp.requested_by_type
    approvals.request_approval(
        kind=Approval.Kind.RAMP_GATE,
        target=target,
        summary=f"Ramp of {ramp.switch_id}: {then}, after {shares[0]}",
        diff={"ramp": ramp.pk, "step": index, "gates": "all others pass or are shown on its page"},
        reason=ramp.justification,
        facts=risk_facts(ramp.switch_id, now),
        lifetime=timedelta(seconds=spec["timeout_seconds"]),
        actor=Actor(type=kind, name=ramp.requested_by_name, user_id=ramp.requested_by_id),
        now=now,
    )


def has_gate(ramp: Ramp, index: int) -> bool:
    return any(gate["type"] == KIND.name for gate in ramp.plan[index]["gates"])


def find_request(ramp: Ramp) -> tuple[str, str] | None:
    """Return kind and target of the approval a live ramp needs to start or advance, or None."""
    if ramp.live and ramp.job.state == Job.State.PENDING:
        return Approval.Kind.RELEASE, ramp.switch_id
    if ramp.live and has_gate(ramp, index := ramp.job.step_index):
        return Approval.Kind.RAMP_GATE, approval_target(ramp, index)
    return None


def withdraw_request(ramp: Ramp, index: int, actor: Actor, now: datetime, why: str) -> None:
    """Void a step's approval request; record a request past its deadline as expired instead."""
    if not has_gate(ramp, index):
        return
    kind, target = Approval.Kind.RAMP_GATE, approval_target(ramp, index)
    late = Approval.objects.filter(
        kind=kind, target=target, state=Approval.State.PENDING, expires_at__lte=now
    )
    for approval in late.select_for_update():
        approvals.expire_request(approval, now)
    approvals.void_requests(kind=kind, target=target, actor=actor, now=now, why=why)


def find_answers(questions: Sequence[GateQuestion], now: datetime) -> list[GateAnswer | None]:
    targets = {question.step for question in questions}
    found = Approval.objects.filter(kind=Approval.Kind.RAMP_GATE, target__in=targets)
    since: dict[int | None, datetime] = {}
    answers = {}
    for approval in found.order_by("id"):
        # An edited request has waited since the original request.
        since[approval.pk] = since.get(approval.replaces_id, approval.requested_at)
        answers[approval.target] = _read_approval(approval, since[approval.pk], now)
    return [answers.get(question.step) for question in questions]


def describe_finding(_spec: Mapping[str, Any], evidence: Mapping[str, Any]) -> str:
    """Return who approved, with the comment, or why nobody did."""
    if "approved_by" not in evidence:
        return get_explanation(evidence)
    comment = f": {evidence['comment']}" if evidence.get("comment") else ""
    return f"{evidence['approved_by']} approved{comment}"


KIND = GateKind(
    name="manual",
    label="Manual approval",
    summary="a person's approval",
    passes_when="someone approves; requested under *Approvals* at the end of the step",
    fields=(
        GateField(
            "timeout_seconds",
            "Time limit for approval",
            whole_number_between(1, MAX_DWELL_SECONDS),
            APPROVAL_SECONDS,
            input=DURATION,
        ),
    ),
    look_up=find_answers,
    evaluate=lambda _question, answer, _now: answer or NOT_YET,
    position=30,
    finding=describe_finding,
    can_fail=False,
    is_unique=True,
    initial_verdict=WAITING,
)


def _read_approval(approval: Approval, asked_at: datetime, now: datetime) -> GateAnswer:
    evidence: dict[str, Any] = {"approval": approval.pk}
    if approval.state == Approval.State.APPROVED:
        evidence |= {"approved_by": approval.decided_by, "comment": approval.comment}
        return GateAnswer(PASS, evidence)
    if approval.state == Approval.State.PENDING:
        evidence["waits_until"] = timestamp(approval.expires_at) if approval.expires_at else None
        if approval.expires_at is None or approval.expires_at > now:
            return GateAnswer(WAITING, {**evidence, "why": "waiting for an approver"})
    if approval.state == Approval.State.DENIED:
        why = f"{approval.decided_by} denied it" + (
            f": {approval.comment}" if approval.comment else ""
        )
        return GateAnswer(FAIL, {**evidence, "why": why})
    if approval.expires_at is not None and approval.state != Approval.State.VOID:
        waited = durations.format_readable(approval.expires_at - asked_at)
        return GateAnswer(FAIL, {**evidence, "why": f"not approved within {waited}"})
    return GateAnswer(WAITING, {**evidence, "why": "was withdrawn and must be requested again"})


@approvals.on_approval(
    Approval.Kind.RAMP_GATE,
    lock_first=publication.lock_with_teams,
    check_reason=reasons.find_text_problems,
    restarts_lifetime=False,
    requires_confirmation=lambda approval: approval.target.startswith(f"{GLOBAL_ID}#"),
)
def _check_step(approval: Approval, actor: Actor, now: datetime) -> None:
    """Raise :class:`Conflict` if the ramp has left the step that the approval is about."""
    ramp = Ramp.objects.select_related("job").get(pk=approval.diff["ramp"])
    if not ramp.live or ramp.job.step_index != approval.diff["step"]:
        raise Conflict(f"The ramp of {ramp.switch_id} is no longer at the step of this request.")
