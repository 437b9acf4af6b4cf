"""Transitions of a ramp, each one transaction with side effects, audit row and messages.

Workers and people share these functions.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from controlplane.core import durations
from controlplane.core.actors import Actor, system_actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.gates import kinds
from controlplane.core.gates import services as gates
from controlplane.core.gates.questions import FAIL
from controlplane.core.jobs import effects
from controlplane.core.jobs.kinds import Probe, no_probe
from controlplane.core.jobs.models import Job, JobStep
from controlplane.core.live.change_notices import notify_changed
from switches.episodes import changes
from switches.models import Episode, OnExpiry
from switches.rules import guard

from . import live_ramps, manual_gates, notifications
from .locked_ramp import LockedRamp
from .questions import build_questions

SYSTEM = system_actor("ramps")
MAX_EVIDENCE = 5
HELD_FOR, DATA, RULES = "held_for", "data", "rules"
"""Key in a step's data of the cause of a hold, and its values: missing data or approval, or a
safety rule. The cause is kept while the ramp is paused."""


def enter_step(locked: LockedRamp, index: int, now: datetime) -> None:
    """Start a step: publish its share, start its dwell, and store its gates for evaluation."""
    plan = locked.ramp.plan[index]
    locked.step(
        index,
        state=JobStep.State.RUNNING,
        started_at=now,
        due_at=now + timedelta(seconds=plan["dwell_seconds"]),
        attempts=1,
    )
    gates.store_questions(build_questions(locked.ramp, index, plan["gates"], now))
    effects.record_effect(locked.job, "publish", now=now)
    locked.publish(plan["percent"], now)


def advance(
    locked: LockedRamp,
    now: datetime,
    *,
    actor: Actor = SYSTEM,
    reason: str = "",
    probe: Probe = no_probe,
) -> bool:
    """Advance the ramp to its next step or complete it; return False if a safety rule holds it.

    Safety rules are checked before the step to 100 %, because that step is a release.
    """
    index = locked.index
    if blocking_rules := _describe_blocking_rules(locked):
        _wait_for_rules(locked, blocking_rules, now, actor, probe)
        return False
    if locked.is_last:
        _complete(locked, now, actor, reason, probe)
        return True
    going_on = {"state": Job.State.RUNNING, "hold_reason": "", "error": "", "outcome": ""}
    locked.write(step_index=index + 1, done=index + 1, **going_on)
    probe("advance.claimed")
    passes = "Step finished, and every gate passes."
    why = reason or (
        passes if locked.ramp.plan[index]["gates"] else "Step finished; it has no gates."
    )
    locked.step(index, state=JobStep.State.PASSED, finished_at=now, error="")
    if locked.ramp.blind_since is not None:
        locked.ramp.blind_since = None
        locked.ramp.save(update_fields=["blind_since"])
    live_ramps.leave_step(locked.ramp, index, actor, now, why)
    enter_step(locked, index + 1, now)
    probe("advance.published")
    record_transition(locked, "ramp.advanced", why, actor, now)
    probe("advance.notified")
    return True


def hold(
    locked: LockedRamp,
    why: str,
    blind_since: datetime | None,
    now: datetime,
    *,
    held_for: str = DATA,
    probe: Probe = no_probe,
) -> None:
    """Hold at the current step until data arrives, a person approves, or safety rules allow.

    A step's hold is announced once, even if its reasons change or the ramp is paused.
    """
    is_new = locked.recall(HELD_FOR) is None
    locked.write(state=Job.State.HOLDING, hold_reason=why)
    probe("hold.claimed")
    locked.ramp.blind_since = blind_since
    locked.ramp.save(update_fields=["blind_since"])
    locked.remember(HELD_FOR, held_for)
    notify_changed("ramps", str(locked.ramp.pk))
    if is_new:
        record_transition(locked, "ramp.held", why, SYSTEM, now, severity="warning")
        probe("hold.notified")
    manual_gates.request_approval(locked.ramp, locked.index, now)


def compensate(
    locked: LockedRamp,
    why: str,
    now: datetime,
    *,
    actor: Actor = SYSTEM,
    action: str = "ramp.compensated",
    gate_results: Sequence[Mapping[str, Any]] = (),
    probe: Probe = no_probe,
) -> AuditEntry:
    """Engage the switch again, end the ramp and announce why.

    An episode past its expiry becomes overdue and gets the policy `hold`, because its expiry can't
    start a second ramp.
    """
    state = JobStep.State.FAILED if actor is SYSTEM else JobStep.State.COMPENSATED
    over = {"state": Job.State.CANCELLED, "finished_at": now, "next_at": None}
    locked.write(**over, outcome=why, error=why, hold_reason="", compensated_at=now)
    probe("compensate.claimed")
    effects.record_effect(locked.job, "compensate", now=now)
    late = locked.episode.expires_at is not None and locked.episode.expires_at <= now
    if late:
        changes.update_episode(locked.episode, {"on_expiry": OnExpiry.HOLD})
    locked.publish(0, now)
    probe("compensate.published")
    if late:
        changes.mark_overdue(locked.switch, locked.episode, f"Its ramp ended: {why}", actor, now)
    live_ramps.close(locked.ramp, locked.job, state, why, actor, now)
    entry = record_transition(
        locked,
        action,
        why,
        actor,
        now,
        severity="critical",
        evidence=_select_evidence(gate_results),
    )
    probe("compensate.notified")
    return entry


def record_transition(
    locked: LockedRamp,
    action: str,
    reason: str,
    actor: Actor,
    now: datetime,
    *,
    severity: str = "",
    evidence: Sequence[Mapping[str, Any]] = (),
    to: Sequence[str] | None = None,
) -> AuditEntry:
    """Write the audit row and messages of a transition; `to` limits the messages' destinations."""
    if to is None:
        to = notifications.route_transition(locked, action, severity, reason, actor, now)
    notify_changed("ramps", str(locked.ramp.pk))
    return changes.record_change(
        action,
        locked.switch,
        locked.episode,
        actor,
        now,
        before=locked.before,
        reason=reason,
        severity=severity if to is None else "info",
        to=to,
        more=notifications.describe_position(locked, evidence),
        in_words=notifications.describe_for_message(locked, evidence),
    )


def _complete(locked: LockedRamp, now: datetime, actor: Actor, reason: str, probe: Probe) -> None:
    why = reason or f"Ramp {locked.ramp.pk} finished: every step passed."
    over = {"state": Job.State.COMPLETED, "finished_at": now, "next_at": None}
    locked.write(**over, done=len(locked.ramp.plan), outcome=why, hold_reason="", error="")
    probe("complete.claimed")
    effects.record_effect(locked.job, "release", now=now)
    live_ramps.close(locked.ramp, locked.job, JobStep.State.PASSED, why, actor, now)
    live_ramps.end_episode(
        locked.head,
        locked.switch,
        locked.episode,
        how=Episode.End.RELEASED,
        action="switch.released",
        reason=f"{locked.ramp.justification} ({why})",
        actor=actor,
        now=now,
        to=notifications.route_transition(locked, "switch.released", "", why, actor, now),
        more=notifications.describe_position(locked),
    )
    probe("complete.notified")


def _wait_for_rules(
    locked: LockedRamp, why: str, now: datetime, actor: Actor, probe: Probe
) -> None:
    is_first = locked.recall(HELD_FOR) != RULES
    since = now if is_first else locked.ramp.blind_since or now
    longest = timedelta(seconds=locked.ramp.plan[locked.index]["max_hold_seconds"])
    if actor is SYSTEM and now - since >= longest:
        waited = durations.format_readable(longest)
        compensate(locked, f"A safety rule blocked it for {waited}: {why}", now, probe=probe)
    elif locked.job.state != Job.State.HOLDING or locked.job.hold_reason != why:
        hold(locked, why, since, now, held_for=RULES, probe=probe)


def _describe_blocking_rules(locked: LockedRamp) -> str:
    if not locked.all_flows_next:
        return ""
    return " ".join(
        f"The rule {refusal.rule}: {refusal.detail} {refusal.would_pass}"
        for refusal in guard.refusals_to_release(locked.switch.pk)
        if refusal.rule not in locked.ramp.overridden
    )


def _select_evidence(gate_results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    ordered = sorted(gate_results, key=lambda gate: gate["verdict"] != FAIL)
    return [
        {
            "gate": kinds.describe_gate(gate),
            "finding": kinds.describe_finding(gate),
            **{key: gate[key] for key in ("verdict", "evidence")},
        }
        for gate in ordered[:MAX_EVIDENCE]
    ]
