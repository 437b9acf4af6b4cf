"""Manual gates: asking a person whether a ramp may go on, and what they said."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from controlplane.core import durations, reasons
from controlplane.core.actors import Actor
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.canonical import timestamp
from controlplane.core.errors import Conflict
from controlplane.core.gates.questions import FAIL, PASS, WAITING, Answer
from switches import publication, risk
from switches.models import Ramp
from switches.scopes import GLOBAL_ID

from . import descriptions, live_ramps

NOT_YET = Answer(WAITING, {"why": "a person is asked when the dwell is over"})


def ask(ramp: Ramp, index: int, now: datetime) -> None:
    """Ask for the approval of a step's manual gate, in the name of whoever asked for the ramp.

    So they can't give it themselves. A step is asked for once, whatever was said. In the caller's
    transaction.
    """
    target = live_ramps.approval_target(ramp, index)
    asked = Approval.objects.filter(kind=Approval.Kind.RAMP_GATE, target=target)
    if asked.exclude(state=Approval.State.VOID).exists():
        return
    spec = next(gate for gate in ramp.plan[index]["gates"] if gate["type"] == "manual")
    share = descriptions.percent(ramp.plan[index]["percent"])
    last = index + 1 == len(ramp.plan)
    then = (
        "release it"
        if last
        else f"go on to {descriptions.percent(ramp.plan[index + 1]['percent'])}"
    )
    approvals.request(
        kind=Approval.Kind.RAMP_GATE,
        target=target,
        summary=f"Ramp of {ramp.switch_id}: {then}, after {share}",
        diff={"ramp": ramp.pk, "step": index, "gates": "all others pass or are shown on its page"},
        reason=ramp.justification,
        facts=risk.risk_facts(ramp.switch_id, now),
        lifetime=timedelta(seconds=spec["timeout_seconds"]),
        actor=requester(ramp),
        now=now,
    )


def requester(ramp: Ramp) -> Actor:
    """Whoever asked for the ramp, as far as it matters who they are."""
    kind: Any = ramp.requested_by_type
    return Actor(type=kind, name=ramp.requested_by_name, user_id=ramp.requested_by_id)


def answers(targets: Iterable[str], now: datetime) -> Mapping[str, Answer]:
    """What people have said to the manual gates of these targets; one that nobody asked is left
    out."""
    found = Approval.objects.filter(kind=Approval.Kind.RAMP_GATE, target__in=list(targets))
    since: dict[int | None, datetime] = {}
    said = {}
    for approval in found.order_by("id"):
        # Since when a person is waited for: one that was edited goes on waiting.
        since[approval.pk] = since.get(approval.replaces_id, approval.requested_at)
        said[approval.target] = _answer(approval, since[approval.pk], now)
    return said


def _answer(approval: Approval, asked_at: datetime, now: datetime) -> Answer:
    evidence: dict[str, Any] = {"approval": approval.pk}
    if approval.state == Approval.State.APPROVED:
        evidence |= {"approved_by": approval.decided_by, "comment": approval.comment}
        return Answer(PASS, evidence)
    if approval.state == Approval.State.PENDING:
        evidence["waits_until"] = timestamp(approval.expires_at) if approval.expires_at else None
        if approval.expires_at is None or approval.expires_at > now:
            return Answer(WAITING, {**evidence, "why": "waits for an approver"})
    if approval.state == Approval.State.DENIED:
        said = f"{approval.decided_by} said no" + (
            f": {approval.comment}" if approval.comment else ""
        )
        return Answer(FAIL, {**evidence, "why": said})
    if approval.expires_at is not None and approval.state != Approval.State.VOID:
        waited = durations.readable(approval.expires_at - asked_at)
        return Answer(FAIL, {**evidence, "why": f"nobody approved within {waited}"})
    return Answer(WAITING, {**evidence, "why": "was withdrawn and has to be asked for anew"})


@approvals.carries_out(
    Approval.Kind.RAMP_GATE,
    lock_first=publication.lock,
    check_reason=reasons.unreadable,
    prolongs=False,
    reaches_far=lambda approval: approval.target.startswith(f"{GLOBAL_ID}#"),
)
def _let_go_on(approval: Approval, actor: Actor, now: datetime) -> None:
    """The next look at the ramp, within a second, sees what was said. Here it only has to be the
    step that was asked about."""
    ramp = Ramp.objects.select_related("job").get(pk=approval.diff["ramp"])
    if not ramp.live or ramp.job.step_index != approval.diff["step"]:
        raise Conflict(f"The ramp of {ramp.switch_id} is no longer at the step this was asked for.")
