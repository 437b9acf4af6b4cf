"""The moves of a ramp: each one transaction, with its side effects, audit row and messages in it.

They are the same for a worker and for a person; the scene knows who writes, and how.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from controlplane.core import durations
from controlplane.core.actors import Actor, system
from controlplane.core.audit.models import AuditEntry
from controlplane.core.gates import kinds
from controlplane.core.gates import services as gates
from controlplane.core.gates.questions import FAIL
from controlplane.core.jobs import effects
from controlplane.core.jobs.kinds import Probe, no_probe
from controlplane.core.jobs.models import Job, JobStep
from controlplane.core.live.notes import changed
from switches.episodes import changes, overdue
from switches.models import Episode, OnExpiry
from switches.rules import guard

from . import (
    live_ramps,
    manual_gates,
    notifications,
)
from .episode_end import end_episode
from .locked_ramp import Scene
from .questions import build_questions

WATCH = system("ramps")
MAX_EVIDENCE = 5
HELD_FOR, DATA, RULES = "held_for", "data", "rules"
"""What a step is held for, as its data keeps it: data or a person, or that no rule is in the way.
It stays there while the ramp is paused."""


def enter(scene: Scene, index: int, now: datetime) -> None:
    """Begin a step, whose share is in force from now on: its dwell, and its gates."""
    plan = scene.ramp.plan[index]
    scene.step(
        index,
        state=JobStep.State.RUNNING,
        started_at=now,
        due_at=now + timedelta(seconds=plan["dwell_seconds"]),
        attempts=1,
    )
    gates.store_questions(build_questions(scene.ramp, index, plan["gates"], now))
    effects.had(scene.job, "publish", now=now)
    scene.publish(plan["percent"], now)


def advance(
    scene: Scene, now: datetime, *, actor: Actor = WATCH, reason: str = "", probe: Probe = no_probe
) -> bool:
    """On to the next step, or to the end; False if a safety rule stands in the way, and it holds.

    A rule is asked where all traffic would flow: that is a release as far as it is concerned.
    """
    index = scene.index
    in_the_way = _rules_in_the_way(scene)
    if in_the_way:
        _wait_for_rules(scene, in_the_way, now, actor, probe)
        return False
    if scene.is_last:
        _complete(scene, now, actor, reason, probe)
        return True
    going_on = {"state": Job.State.RUNNING, "hold_reason": "", "error": "", "outcome": ""}
    scene.write(step_index=index + 1, done=index + 1, **going_on)
    probe("advance.claimed")
    said = reason or "Its dwell is over, and every gate passes."
    _leave(scene, index, now, actor, said)
    enter(scene, index + 1, now)
    probe("advance.published")
    tell(scene, "ramp.advanced", said, actor, now)
    probe("advance.told")
    return True


def hold(
    scene: Scene,
    why: str,
    blind_since: datetime | None,
    now: datetime,
    *,
    held_for: str = DATA,
    probe: Probe = no_probe,
) -> None:
    """Stay at this step until data comes, a person answers or rules allow it; told once, whatever
    the reasons become meanwhile, and however often it is paused and resumed."""
    is_new = scene.recall(HELD_FOR) is None
    scene.write(state=Job.State.HOLDING, hold_reason=why)
    probe("hold.claimed")
    scene.ramp.blind_since = blind_since
    scene.ramp.save(update_fields=["blind_since"])
    scene.remember(HELD_FOR, held_for)
    changed("ramps", str(scene.ramp.pk))
    if is_new:
        tell(scene, "ramp.held", why, WATCH, now, severity="warning")
        probe("hold.told")
    manual_gates.ask(scene.ramp, scene.index, now)


def compensate(
    scene: Scene,
    why: str,
    now: datetime,
    *,
    actor: Actor = WATCH,
    action: str = "ramp.compensated",
    seen: Sequence[Mapping[str, Any]] = (),
    probe: Probe = no_probe,
) -> AuditEntry:
    """Nothing flows any more: engaged again at 0 %, the ramp is over, people are told why.

    Past its expiry the switch is held from now on, and OVERDUE: one ramp by itself is enough.
    """
    state = JobStep.State.FAILED if actor is WATCH else JobStep.State.COMPENSATED
    over = {"state": Job.State.CANCELLED, "finished_at": now, "next_at": None}
    scene.write(**over, outcome=why, error=why, hold_reason="", compensated_at=now)
    probe("compensate.claimed")
    effects.had(scene.job, "compensate", now=now)
    late = past_its_time(scene.episode, now)
    if late:
        scene.episode.on_expiry = OnExpiry.HOLD
        scene.episode.save(update_fields=["on_expiry"])
    scene.publish(0, now)
    probe("compensate.published")
    if late:
        overdue.mark_overdue(scene.switch, scene.episode, f"Its ramp ended: {why}", actor, now)
    live_ramps.close(scene.ramp, scene.job, state, why, actor, now)
    told = tell(scene, action, why, actor, now, severity="critical", evidence=_evidence(seen))
    probe("compensate.told")
    return told


def tell(
    scene: Scene,
    action: str,
    said: str,
    actor: Actor,
    now: datetime,
    *,
    severity: str = "",
    evidence: Sequence[Mapping[str, Any]] = (),
    to: Sequence[str] | None = None,
) -> AuditEntry:
    """The audit row and the messages of a move, with where the ramp stands now.

    `to` are the only destinations, if something else has told of it already.
    """
    if to is None:
        to = notifications.way(scene, action, severity, said, actor, now)
    changed("ramps", str(scene.ramp.pk))
    return changes.record_change(
        action,
        scene.switch,
        scene.episode,
        actor,
        now,
        before=scene.before,
        reason=said,
        severity=severity if to is None else "info",
        to=to,
        more=notifications.more(scene, evidence),
        in_words=notifications.in_words(scene, evidence),
    )


def past_its_time(episode: Episode, now: datetime) -> bool:
    return episode.expires_at is not None and episode.expires_at <= now


def _complete(scene: Scene, now: datetime, actor: Actor, reason: str, probe: Probe) -> None:
    """All of it has flowed for a dwell and every gate passes: the episode is over."""
    said = reason or f"Ramp {scene.ramp.pk} is through: every step passed."
    over = {"state": Job.State.COMPLETED, "finished_at": now, "next_at": None}
    scene.write(**over, done=len(scene.ramp.plan), outcome=said, hold_reason="", error="")
    probe("complete.claimed")
    effects.had(scene.job, "release", now=now)
    live_ramps.close(scene.ramp, scene.job, JobStep.State.PASSED, said, actor, now)
    end_episode(
        scene.head,
        scene.switch,
        scene.episode,
        how=Episode.End.RELEASED,
        action="switch.released",
        reason=f"{scene.ramp.justification} ({said})",
        actor=actor,
        now=now,
        to=notifications.way(scene, "switch.released", "", said, actor, now),
        more=notifications.more(scene),
    )
    probe("complete.told")


def _leave(scene: Scene, index: int, now: datetime, actor: Actor, said: str) -> None:
    scene.step(index, state=JobStep.State.PASSED, finished_at=now, error="")
    if scene.ramp.blind_since is not None:
        scene.ramp.blind_since = None
        scene.ramp.save(update_fields=["blind_since"])
    live_ramps.leave(scene.ramp, index, actor, now, said)


def _wait_for_rules(scene: Scene, why: str, now: datetime, actor: Actor, probe: Probe) -> None:
    """Hold until no rule is in the way, as long as for data; then it goes back."""
    is_first = scene.recall(HELD_FOR) != RULES
    since = now if is_first else scene.ramp.blind_since or now
    longest = timedelta(seconds=scene.ramp.plan[scene.index]["max_hold_seconds"])
    if actor is WATCH and now - since >= longest:
        waited = durations.readable(longest)
        compensate(scene, f"A safety rule was in the way for {waited}: {why}", now, probe=probe)
    elif scene.job.state != Job.State.HOLDING or scene.job.hold_reason != why:
        hold(scene, why, since, now, held_for=RULES, probe=probe)


def _rules_in_the_way(scene: Scene) -> str:
    """Why a safety rule forbids the next step, if it lets everything flow; empty otherwise."""
    if not scene.all_flows_next:
        return ""
    overridden = scene.ramp.overridden
    refused = [
        one for one in guard.refusals_to_release(scene.switch.pk) if one.rule not in overridden
    ]
    return " ".join(f"The rule {one.rule}: {one.detail} {one.would_pass}" for one in refused)


def _evidence(seen: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What failed, first, with what was found: enough to decide by, not all there is."""
    ordered = sorted(seen, key=lambda gate: gate["verdict"] != FAIL)
    return [
        {"gate": kinds.describe(gate), "verdict": gate["verdict"], "evidence": gate["evidence"]}
        for gate in ordered[:MAX_EVIDENCE]
    ]
