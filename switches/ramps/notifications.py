"""Notifications about ramps: one message per ramp in its episode's thread, or one for many ramps.

Callers hold the lock of the :class:`Publication` row.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from controlplane.core.actors import Actor
from controlplane.core.canonical import timestamp
from controlplane.core.jobs.models import Job
from controlplane.core.message_templates import severity_of
from controlplane.core.outbox import services as outbox
from controlplane.notify.delivery import collected_changes
from controlplane.notify.targets import routing
from switches.episodes import changes, digests
from switches.models import Ramp

from . import descriptions
from .locked_ramp import LockedRamp

MAX_NOTIFIED_SINGLY = 3
"""Maximum ramps started by expiries that are announced separately."""
MAX_ALARMS = 10
"""Maximum holds, or compensations within `LATELY`, announced separately."""
LATELY = timedelta(minutes=10)
HELD, COMPENSATED, FAILED = "ramp.held", "ramp.compensated", "ramp.failed"
ALARMS = (HELD, COMPENSATED)


COLLECTED: Mapping[str, tuple[str, timedelta, timedelta] | None] = {
    "ramp.started": ("ramps.started", timedelta(seconds=30), LATELY),
    "ramp.advanced": None,  # The episode's thread is enough between start and end.
    "switch.released": ("ramps.released", timedelta(seconds=30), LATELY),
    HELD: ("ramps.held", timedelta(seconds=15), timedelta(minutes=5)),
    COMPENSATED: ("ramps.compensated", timedelta(seconds=15), timedelta(minutes=1)),
}
"""The collecting message about many ramps, by the event of one ramp's transition; None for none.

Each has an event, a delay after the first transition in it, and a minimum time after the previous
collecting message.
"""


def route_transition(
    locked: LockedRamp, event: str, severity: str, reason: str, actor: Actor, now: datetime
) -> list[str] | None:
    """Return the destinations of a message about one ramp's transition; None means all.

    While many ramps change at once, only destinations with a thread about the episode get this
    message. For the others, the transition is added to one collecting message, if the event has
    one. A person's transition goes to all.
    """
    ramp = locked.ramp
    if actor.type != "system" or event not in COLLECTED:
        return None
    if event not in ALARMS and not ramp.automatic:
        return None
    collecting = COLLECTED[event]
    joins = collecting is not None and collected_changes.is_open(collecting[0], now)
    if not joins and not _are_many(ramp, event, now):
        return None
    if collecting is not None:
        collecting_event, soon, apart = collecting
        scope = ramp.switch_id.partition(":")[0]
        severity = severity or severity_of(event)
        collected_changes.add_change(
            ramp.switch_id,
            reason,
            event=collecting_event,
            to=routing.find_destinations(event, scope, severity, now, ramp.switch_id),
            severity=severity,
            path="/ramps/",
            now=now,
            soon=soon,
            apart=apart,
        )
    return digests.thread_destinations(locked.episode)


def describe_position(
    locked: LockedRamp, gate_results: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """Return the ramp's step, share and gate results for audit rows and messages."""
    return {
        "ramp": locked.ramp.pk,
        "step": f"{locked.index + 1} of {len(locked.ramp.plan)}",
        "percent": float(locked.episode.allow_percent),
        **({"evidence": list(gate_results)} if gate_results else {}),
    }


def describe_for_message(
    locked: LockedRamp, gate_results: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """Return the ramp's plan, gates, end of the hold and next action for messages."""
    ramp, job = locked.ramp, locked.job
    facts: dict[str, Any] = {"plan": descriptions.describe_plan(ramp.plan)}
    if gate_results:
        facts["gates"] = "; ".join(result["finding"] for result in gate_results)
    if job.state == Job.State.HOLDING and ramp.blind_since is not None:
        longest = timedelta(seconds=ramp.plan[locked.index]["max_hold_seconds"])
        facts["held_until_at"] = timestamp(ramp.blind_since + longest)
    if job.state == Job.State.CANCELLED:
        facts["to_do"] = (
            "Fix the cause, then release it again."
            if locked.episode.overdue_at is None
            else "It is past its expiry and OVERDUE. Fix the cause, then release it, or extend it."
        )
    return facts


def notify_failed_compensation(job: Job, why: str, now: datetime) -> None:
    """Announce in the episode's thread that compensating a ramp failed."""
    ramp = Ramp.objects.select_related("switch", "episode").get(pk=job.pk)
    episode = ramp.episode
    outbox.announce(
        event=FAILED,
        event_key=f"ramp:{ramp.pk}:failed",
        scope=ramp.switch.scope,
        severity="info",
        subject=f"episode:{episode.pk}",
        resource=ramp.switch_id,
        facts=changes.message_facts(
            ramp.switch,
            episode,
            Actor(type="system", name="ramps"),
            said=why,
            ramp=ramp.pk,
            percent=float(episode.allow_percent),
            step=f"{job.step_index + 1} of {len(ramp.plan)}",
            to_do="Retrying continuously. Abort the ramp, or engage the switch.",
        ),
        now=now,
        to=digests.thread_destinations(episode),
    )


def _are_many(ramp: Ramp, event: str, now: datetime) -> bool:
    if event == HELD:
        return Ramp.objects.filter(live=True, job__state=Job.State.HOLDING).count() > MAX_ALARMS
    if event == COMPENSATED:
        lately = Job.objects.filter(finished_at__gt=now - LATELY, compensated_at__gt=now - LATELY)
        return lately.filter(ramp__isnull=False).count() > MAX_ALARMS
    others = Ramp.objects.filter(live=True, automatic=True).exclude(pk=ramp.pk)
    return others.count() >= MAX_NOTIFIED_SINGLY
