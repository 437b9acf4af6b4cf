"""What screens show of drills: one with its steps and times, and how a switch stands with them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controlplane.core.jobs.models import Job
from switches.drills import live, moves, neglect
from switches.drills.resources import step_state
from switches.models import Drill, DrillMark, DrillSchedule, Switch
from switches.scopes import GLOBAL

STEPS = {
    "look": "Look who is there",
    "engage": "Engage",
    "engaged_applied": "Wait until they stop",
    "release": "Release",
    "released_applied": "Wait until they go on",
    "record": "Write it down",
}


@dataclass(frozen=True)
class Step:
    """A step in words; `state` is that of the job's step, or `skipped`."""

    title: str
    state: str


@dataclass(frozen=True)
class Shown:
    """A drill as a row: what it is doing, or what came of it and how long that took.

    `outcome` is running, passed, failed, cancelled, or looked (a dry one that found somebody).
    `engage` and `release` are what was measured of each, or None.
    """

    drill: Drill
    job: Job
    outcome: str
    said: str
    steps: tuple[Step, ...]
    now: str
    engage: dict[str, Any] | None
    release: dict[str, Any] | None


def shown(drills: Iterable[Drill]) -> list[Shown]:
    """Drills that were read with their jobs and the jobs' steps."""
    return [_shown(drill) for drill in drills]


def of_switch(switch: Switch, now: datetime) -> dict[str, Any]:
    """The context of `switches/_drill.html`: how this switch stands with drills."""
    newest = _with_steps().filter(switch_id=switch.pk).order_by("-job_id").first()
    last = _shown(newest) if newest else None
    return {
        "drill": last if last and last.outcome == "running" else None,
        "last_drill": last if last and last.outcome != "running" else None,
        "drill_schedule": DrillSchedule.objects.filter(switch_id=switch.pk).first(),
        "drill_possible": switch.scope != GLOBAL.name,
        "drill_marked": DrillMark.objects.exists(),
        "unproven": neglect.is_unproven(switch, now),
    }


def _with_steps() -> Any:
    return Drill.objects.select_related("job").prefetch_related("job__steps")


def _shown(drill: Drill) -> Shown:
    steps = sorted(drill.job.steps.all(), key=lambda step: step.index)
    present = next((step for step in steps if step.index == drill.job.step_index), None)
    outcome = _outcome(drill)
    return Shown(
        drill=drill,
        job=drill.job,
        outcome=outcome,
        said=live.why_not(drill) if outcome == "running" else moves.said(drill),
        steps=tuple(Step(STEPS.get(step.name, step.name), step_state(step)) for step in steps),
        now=STEPS.get(present.name, present.name) if outcome == "running" and present else "",
        engage=drill.measured.get("engage"),
        release=drill.measured.get("release"),
    )


def _outcome(drill: Drill) -> str:
    if drill.live:
        return "running"
    if drill.passed is None:
        return "cancelled"
    if not drill.passed:
        return "failed"
    return "looked" if drill.mode == live.DRY else "passed"
