"""Who is told of a ramp's move, and in how many messages.

A ramp is told of by itself, as any change. But where hundreds began at the same expiry, or hold or
fail at the same gate, each goes on in the thread of its own episode, and the channels get one
message that collects them. Called under the publication row's lock: moves follow each other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from controlplane.core.actors import Actor
from controlplane.core.canonical import timestamp
from controlplane.core.jobs.models import Job
from controlplane.core.message_templates import severity_of
from controlplane.core.outbox import collecting
from controlplane.core.outbox import services as outbox
from controlplane.core.targets import routing
from switches.episodes import digests, facts
from switches.models import Episode, Ramp

from . import descriptions
from .locked_ramp import Scene

MAX_AT_ONCE = 3
"""So many ramps that began by themselves are told of one by one while they are under way."""
MAX_ALARMS = 10
"""So many that hold, or that went back within ten minutes, are told of one by one."""
LATELY = timedelta(minutes=10)
HELD, COMPENSATED, FAILED = "ramp.held", "ramp.compensated", "ramp.failed"
ALARMS = (HELD, COMPENSATED)


@dataclass(frozen=True)
class Together:
    """The message that collects an event: it waits `soon`, and `apart` from the one before."""

    event: str
    soon: timedelta
    apart: timedelta


TOGETHER: Mapping[str, Together | None] = {
    "ramp.started": Together("ramps.started", timedelta(seconds=30), LATELY),
    "ramp.advanced": None,  # Its start and its end are told; in between its thread is enough.
    "switch.released": Together("ramps.released", timedelta(seconds=30), LATELY),
    HELD: Together("ramps.held", timedelta(seconds=15), timedelta(minutes=5)),
    COMPENSATED: Together("ramps.compensated", timedelta(seconds=15), timedelta(minutes=1)),
}


def way(
    scene: Scene,
    event: str,
    severity: str,
    said: str,
    actor: Actor,
    now: datetime,
) -> list[str] | None:
    """Where alone a move is told, because a collecting message tells the rest; None: everywhere.

    What people do is always told everywhere.
    """
    ramp = scene.ramp
    if actor.type != "system" or event not in TOGETHER:
        return None
    if event not in ALARMS and not ramp.automatic:
        return None
    together = TOGETHER[event]
    joins = together is not None and collecting.is_open(together.event, now)
    if not joins and not _are_many(ramp, event, now):
        return None
    if together is not None:
        scope = ramp.switch_id.partition(":")[0]
        severity = severity or severity_of(event)
        collecting.add(
            ramp.switch_id,
            said,
            event=together.event,
            to=routing.routed(event, scope, severity, now),
            severity=severity,
            path="/ramps/",
            now=now,
            soon=together.soon,
            apart=together.apart,
        )
    return digests.thread_destinations(scene.episode)


def more(scene: Scene, seen: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Where the ramp stands now: what is told of every move beside the facts of its episode."""
    return {
        "ramp": scene.ramp.pk,
        "step": f"{scene.index + 1} of {len(scene.ramp.plan)}",
        "percent": float(scene.episode.allow_percent),
        **({"evidence": list(seen)} if seen else {}),
    }


def in_words(scene: Scene, seen: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """What only a message says: the plan, what the gates said, until when it holds, what is to be
    done now."""
    ramp, job = scene.ramp, scene.job
    told: dict[str, Any] = {"plan": descriptions.plan(ramp.plan)}
    if seen:
        told["gates"] = "; ".join(map(descriptions.seen, seen))
    if job.state == Job.State.HOLDING and ramp.blind_since is not None:
        longest = timedelta(seconds=ramp.plan[scene.index]["max_hold_seconds"])
        told["held_until_at"] = timestamp(ramp.blind_since + longest)
    if job.state == Job.State.CANCELLED:
        told["to_do"] = _to_do(scene.episode)
    return told


def failed(job: Job, why: str, now: datetime) -> None:
    """In the thread of the episode, whose head says otherwise that it goes on. People are called
    by the job."""
    ramp = Ramp.objects.select_related("switch", "episode").get(pk=job.pk)
    episode = ramp.episode
    actor = Actor(type="system", name="ramps")
    outbox.announce(
        event=FAILED,
        event_key=f"ramp:{ramp.pk}:failed",
        scope=ramp.switch.scope,
        severity="info",
        subject=f"episode:{episode.pk}",
        facts=facts.message_facts(
            ramp.switch,
            episode,
            actor,
            said=why,
            ramp=ramp.pk,
            percent=float(episode.allow_percent),
            step=f"{job.step_index + 1} of {len(ramp.plan)}",
            to_do="It is tried again all the time. Abort it, or engage the switch.",
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
    return others.count() >= MAX_AT_ONCE


def _to_do(episode: Episode) -> str:
    if episode.overdue_at is not None:
        return "It is past its expiry and OVERDUE. Remove the cause, then release it; or extend it."
    return "Remove the cause, then release it again."
