"""Lookup of a switch's live or last ramp, early end of a live ramp, and the end of its episode."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

from controlplane.core.actors import Actor
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.audit.models import AuditEntry
from controlplane.core.escalations import services as escalation
from controlplane.core.gates import services as gates
from controlplane.core.jobs import control, endings
from controlplane.core.jobs.models import Job, JobStep
from controlplane.core.live.change_notices import notify_changed
from switches import publication
from switches.episodes import changes
from switches.models import Episode, Publication, Ramp, Switch

from . import manual_gates
from .questions import build_questions

STATES: Mapping[str, str] = {
    Job.State.PENDING: "pending_approval",
    Job.State.RUNNING: "running",
    Job.State.HOLDING: "holding",
    Job.State.PAUSED: "paused",
    Job.State.COMPLETED: "completed",
    Job.State.CANCELLED: "aborted",
    Job.State.FAILED: "failed",
}
"""Ramp states by job state."""


def find_live_ramp(switch_id: str) -> Ramp | None:
    """Return the switch's running or pending ramp with its job, or None."""
    return Ramp.objects.select_related("job").filter(switch_id=switch_id, live=True).first()


def find_last_ramp(switch_id: str) -> Ramp | None:
    """Return the switch's last ramp with its job, or None.

    Automatic ramps are left out: nobody chose their plan.
    """
    ramps = Ramp.objects.select_related("job").filter(switch_id=switch_id, automatic=False)
    return ramps.order_by("-pk").first()


def supersede(switch: Switch, outcome: str, actor: Actor, now: datetime) -> Ramp | None:
    """End the live ramp of a switch that is released or engaged by other means.

    The caller has locked the :class:`Publication` row, and updates the episode. A worker's lease on
    the ramp is revoked. Return the ended ramp, or None if there was no live ramp.
    """
    ramp = Ramp.objects.filter(switch=switch, live=True).first()
    if ramp is None:
        return None
    job = Job.objects.select_for_update().get(pk=ramp.pk)
    over = {"state": Job.State.CANCELLED, "finished_at": now, "next_at": None}
    control.take_over(job, now, **over, outcome=outcome, hold_reason="")
    close(ramp, job, JobStep.State.COMPENSATED, outcome, actor, now)
    return ramp


def end_episode(
    head: Publication,
    switch: Switch,
    episode: Episode,
    *,
    how: Episode.End,
    action: str,
    reason: str,
    actor: Actor,
    now: datetime,
    to: Sequence[str] | None = None,
    more: Mapping[str, Any] = MappingProxyType({}),
) -> AuditEntry:
    """End an episode and its live ramp, publish the release, and return the audit row.

    `more` is added to the audit row and the messages; `to` limits the messages' destinations.
    """
    escalation.close(subject=changes.episode_subject(episode), now=now)
    ended = supersede(switch, f"Released at once, by {actor.label}: {reason}", actor, now)
    facts = {"ramp": ended.pk, **more} if ended is not None else more
    before = changes.audit_state(switch, episode)
    end = {"ended_at": now, "ended_by": actor.label, "ended_how": how, "justification": reason}
    changes.update_episode(episode, end)
    publication.publish(head, switch, now)
    void_requests(switch, "The episode has ended.", actor, now)
    return changes.record_change(
        action, switch, episode, actor, now, before=before, reason=reason, to=to, more=facts
    )


def void_requests(switch: Switch, why: str, actor: Actor, now: datetime) -> None:
    """Void the pending requests to release a switch or to keep it engaged permanently."""
    for kind in (Approval.Kind.RELEASE, Approval.Kind.PERMANENT):
        approvals.void_requests(kind=kind, target=switch.pk, actor=actor, now=now, why=why)


def close(ramp: Ramp, job: Job, step_state: str, why: str, actor: Actor, now: datetime) -> None:
    """End a ramp: close its current step, stored gates, approval request and escalation.

    If the ramp was compensated, also void a pending request to release its switch immediately.
    """
    left = JobStep.objects.filter(job=job, index=job.step_index, state=JobStep.State.RUNNING)
    error = "" if step_state == JobStep.State.PASSED else why
    left.update(state=step_state, finished_at=now, error=error)
    ramp.live, ramp.blind_since = False, None
    ramp.save(update_fields=["live", "blind_since"])
    endings.close_escalation(job, now)
    notify_changed("ramps", str(ramp.pk))
    leave_step(ramp, job.step_index, actor, now, why)
    if job.compensated_at is not None:
        kind, why = Approval.Kind.RELEASE, "The ramp failed, and the switch was engaged again."
        approvals.void_requests(kind=kind, target=ramp.switch_id, actor=actor, now=now, why=why)


def leave_step(ramp: Ramp, index: int, actor: Actor, now: datetime, why: str) -> None:
    gates.withdraw_questions(build_questions(ramp, index, ramp.plan[index]["gates"], now))
    manual_gates.withdraw_request(ramp, index, actor, now, why)


def was_released_at_once(ramp: Ramp) -> bool:
    """Return True if an immediate release of its switch ended the ramp."""
    job, ended_at = ramp.job, ramp.episode.ended_at
    is_cancelled = job.state == Job.State.CANCELLED and job.compensated_at is None
    return is_cancelled and ended_at is not None and ended_at == job.finished_at


def get_percent(ramp: Ramp) -> Any:
    """Return the share of traffic that the ramp allows, in percent; after its end, 100 or 0."""
    if ramp.live:
        return ramp.episode.allow_percent
    is_through = ramp.job.state == Job.State.COMPLETED or was_released_at_once(ramp)
    return 100 if is_through else 0
