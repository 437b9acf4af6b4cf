"""Releases that need a second person: request, approval and denial."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controlplane.core import reasons
from controlplane.core.actors import Actor
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.audit import services as audit
from controlplane.core.audit.models import AuditEntry
from controlplane.core.errors import Conflict
from controlplane.core.jobs.models import Job
from switches import publication
from switches.blast import risk_facts
from switches.models import Episode, Publication, Ramp, Switch
from switches.ramps import creation, descriptions, live_ramps
from switches.ramps import plan as plans
from switches.rules import break_glass, guard
from switches.scopes import GLOBAL, GLOBAL_ID

from .registration import lock_approved

HASTY = f"less than {plans.MIN_EARLY_SECONDS} s at {plans.MAX_EARLY_PERCENT} % or less"


@dataclass(frozen=True)
class ReleaseRequest:
    """A validated request to release a switch; `steps` is None for an immediate release."""

    switch: Switch
    episode: Episode
    justification: str
    steps: list[dict[str, Any]] | None

    @property
    def at_once(self) -> bool:
        """Return True if all traffic would flow without waiting for any dwell or gate."""
        return self.steps is None or plans.is_immediate(self.steps)

    @property
    def is_hasty(self) -> bool:
        """Return True if the release is immediate or has a hasty plan (:func:`plans.is_hasty`)."""
        return self.steps is None or plans.is_hasty(self.steps)


def request_approval(request: ReleaseRequest, actor: Actor, now: datetime) -> Approval:
    """Request a second person's approval of a release; for a ramp, also create the pending ramp."""
    switch, episode = request.switch, request.episode
    by, steps = "", request.steps
    if steps is not None:
        pace = f"; {HASTY}, which counts as at once" if plans.is_hasty(steps) else ""
        by = f" by ramp ({descriptions.describe_plan(steps)}{pace})"
    kind = Approval.Kind.RELEASE
    waiting = Approval.objects.filter(kind=kind, target=switch.pk, state=Approval.State.PENDING)
    before = waiting.values_list("pk", flat=True).first()
    approval = approvals.request_approval(
        kind=kind,
        target=switch.pk,
        summary=f"Release {switch.pk}{by}: services allow all traffic again",
        diff={
            "episode": episode.pk,
            "state": [episode.state.value, "released"],
            "mode": "immediate" if steps is None else "ramp",
            **({} if steps is None else {"plan": steps}),
        },
        reason=request.justification,
        risk="critical" if switch.scope == GLOBAL.name else "high",
        facts=risk_facts(switch.pk, now),
        actor=actor,
        now=now,
    )
    if approval.pk == before:
        return approval  # It was requested already, with its ramp.
    pending = live_ramps.find_live_ramp(switch.pk)
    if pending is not None and pending.job.state == Job.State.PENDING:
        end_pending_ramp(pending, switch, "The request has changed.", actor, now)
    if steps is not None:
        creation.request_ramp(
            switch,
            episode,
            steps=steps,
            justification=request.justification,
            actor=actor,
            now=now,
        )
    return approval


def _end_unapproved(approval: Approval, actor: Actor, now: datetime) -> None:
    pending = live_ramps.find_live_ramp(approval.target)
    if pending is None or pending.job.state != Job.State.PENDING:
        return
    switch = Switch.objects.select_for_update().get(pk=approval.target)
    why = f"Not approved: {approval.state}. {approval.comment}".strip()
    end_pending_ramp(pending, switch, why, actor, now)


def end_pending_ramp(pending: Ramp, switch: Switch, why: str, actor: Actor, now: datetime) -> None:
    """End a ramp that has not started, and write an audit row."""
    live_ramps.supersede(switch, why, actor, now)
    audit.record(
        actor=actor,
        action="ramp.aborted",
        target=switch.pk,
        reason=why,
        before={"ramp": pending.pk, "state": live_ramps.STATES[Job.State.PENDING]},
        after={"ramp": pending.pk, "state": live_ramps.STATES[Job.State.CANCELLED]},
        now=now,
    )


def _describe_changes(approvals: Sequence[Approval]) -> list[dict[str, Any]]:
    how = {"immediate": "all of it at once", "ramp": "in steps"}
    return [
        {"state": approval.diff.get("state"), "how": how.get(approval.diff.get("mode", ""))}
        for approval in approvals
    ]


@approvals.on_approval(
    Approval.Kind.RELEASE,
    lock_first=publication.lock_with_teams,
    check_reason=reasons.find_text_problems,
    on_end=_end_unapproved,
    requires_confirmation=lambda approval: approval.target == GLOBAL_ID,
    describe_changes=_describe_changes,
)
def _release_as_approved(approval: Approval, actor: Actor, now: datetime) -> None:
    head = publication.lock()
    switch, episode = lock_approved(approval)
    break_glass.override_refusals(guard.refusals_to_release(switch.pk), None)
    if approval.diff.get("mode") != "ramp":
        release_at_once(head, switch, episode, approval.reason, actor, now)
        return
    ramp = live_ramps.find_live_ramp(switch.pk)
    if ramp is None or ramp.job.state != Job.State.PENDING:
        raise Conflict(f"The ramp of {switch.pk} no longer waits for approval.")
    if ramp.justification != approval.reason:  # It was edited while it waited.
        ramp.justification = approval.reason
        ramp.save(update_fields=["justification"])
    creation.activate_ramp(head, switch, episode, ramp, actor=actor, now=now)


def release_at_once(
    head: Publication, switch: Switch, episode: Episode, reason: str, actor: Actor, now: datetime
) -> AuditEntry:
    return live_ramps.end_episode(
        head,
        switch,
        episode,
        how=Episode.End.RELEASED,
        action="switch.released",
        reason=reason,
        actor=actor,
        now=now,
    )
