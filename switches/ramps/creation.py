"""Creation and start of ramps: at once, after an approval, or when an episode expires."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.audit.models import AuditEntry
from controlplane.core.canonical import timestamp
from controlplane.core.errors import Conflict
from controlplane.core.escalations import services as escalation
from controlplane.core.jobs import control
from controlplane.core.jobs.models import Job
from controlplane.core.live.change_notices import notify_changed
from switches.episodes import changes
from switches.models import Episode, Publication, Ramp, Switch

from . import descriptions, plan, transitions
from .locked_ramp import LockedRamp
from .transitions import SYSTEM

KIND = "ramp"


def create_ramp(
    switch: Switch,
    episode: Episode,
    steps: list[dict[str, Any]],
    justification: str,
    actor: Actor,
    now: datetime,
    *,
    key: str | None = None,
    state: str = Job.State.RUNNING,
    **fields: Any,
) -> Ramp:
    """Create a ramp and its job; :func:`activate_ramp` starts it.

    `steps` is the result of :func:`switches.ramps.plan.read_plan`. The caller has locked the
    :class:`Publication` row, the switch and the episode, and the switch has no live ramp. Raise
    :class:`Conflict` if there is a job with this `key`.
    """
    job = control.create_job(
        kind=KIND,
        subject=switch.pk,
        steps=[
            control.PlannedStep(descriptions.format_percent(step["percent"]), step)
            for step in steps
        ],
        reason=justification,
        actor=actor,
        now=now,
        key=key,
        state=state,
    )
    if job is None:
        raise Conflict("This ramp has already started.")
    return Ramp.objects.create(
        job=job,
        switch=switch,
        episode=episode,
        plan=steps,
        justification=justification,
        requested_by_type=actor.type,
        requested_by_name=actor.name,
        requested_by_id=actor.user_id,
        **fields,
    )


def request_ramp(
    switch: Switch,
    episode: Episode,
    *,
    steps: list[dict[str, Any]],
    justification: str,
    actor: Actor,
    now: datetime,
) -> None:
    """Create a ramp that waits for an approval, which the caller requests."""
    ramp = create_ramp(switch, episode, steps, justification, actor, now, state=Job.State.PENDING)
    audit.record(
        actor=actor,
        action="ramp.requested",
        target=switch.pk,
        reason=justification,
        after={"ramp": ramp.pk, "episode": episode.pk, "plan": descriptions.describe_plan(steps)},
        now=now,
    )
    notify_changed("ramps", str(ramp.pk))


def start_at_expiry(
    head: Publication,
    switch: Switch,
    episode: Episode,
    now: datetime,
    to: Sequence[str] | None = None,
) -> bool:
    """Start the ramp of an expired episode; return False if this expiry already started one.

    `to` limits the notified destinations; None means all.
    """
    ends_at = timestamp(episode.expires_at) if episode.expires_at else "never"
    key = f"ramp:auto:{episode.pk}:{ends_at}"
    why = "Expired, with the policy to ramp."
    steps = plan.read_plan()
    try:
        ramp = create_ramp(switch, episode, steps, why, SYSTEM, now, key=key, automatic=True)
    except Conflict:
        return False
    activate_ramp(head, switch, episode, ramp, actor=SYSTEM, now=now, to=to)
    return True


def activate_ramp(
    head: Publication,
    switch: Switch,
    episode: Episode,
    ramp: Ramp,
    *,
    actor: Actor,
    now: datetime,
    to: Sequence[str] | None = None,
) -> AuditEntry:
    """Start a ramp that was created: publish its first share and close the episode's escalation.

    A permanent episode with a missed re-confirmation is escalated again if its ramp is compensated.
    """
    write = partial(control.take_over, ramp.job, now)
    before = changes.audit_state(switch, episode)
    locked = LockedRamp(head, switch, episode, ramp, ramp.job, write, before)
    locked.write(state=Job.State.RUNNING, started_at=now, next_at=now, heartbeat_at=now, attempts=1)
    episode.overdue_at = None
    if episode.permanent:
        episode.hour_reminder_for = None
    episode.save(update_fields=["overdue_at", "hour_reminder_for"])
    escalation.close(subject=changes.episode_subject(episode), now=now)
    transitions.enter_step(locked, 0, now)
    return transitions.record_transition(
        locked, "ramp.started", ramp.justification, actor, now, to=to
    )
