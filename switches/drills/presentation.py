"""Template context of drills: table rows with steps, and the drill section of a switch page."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controlplane.core.jobs.models import Job
from switches.episodes import live_drills
from switches.models import Drill, DrillMark, DrillSchedule, Switch
from switches.scopes import GLOBAL

from . import queries, transitions
from .shapes import step_state

STEPS = {
    "look": "Look who is there",
    "engage": "Engage",
    "engaged_applied": "Wait until they stop",
    "release": "Release",
    "released_applied": "Wait until they go on",
    "record": "Write it down",
}


@dataclass(frozen=True)
class DrillStep:
    """A step of a drill row; `state` is the job step's state, or `skipped`."""

    title: str
    state: str


@dataclass(frozen=True)
class DrillRow:
    """A drill as a table row.

    `outcome` is `running`, `passed`, `failed`, `cancelled`, or `looked` (a dry drill that found
    instances). `now` is the title of the running step. `engage` and `release` are the measurements
    of these steps, or None.
    """

    drill: Drill
    job: Job
    outcome: str
    said: str
    steps: tuple[DrillStep, ...]
    now: str
    engage: dict[str, Any] | None
    release: dict[str, Any] | None


def build_drill_rows(drills: Iterable[Drill]) -> list[DrillRow]:
    """Return rows of drills that were fetched with their jobs and job steps."""
    return [_build_drill_row(drill) for drill in drills]


def switch_context(switch: Switch, now: datetime) -> dict[str, Any]:
    newest = _with_steps().filter(switch_id=switch.pk).order_by("-job_id").first()
    last = _build_drill_row(newest) if newest else None
    return {
        "drill": last if last and last.outcome == "running" else None,
        "last_drill": last if last and last.outcome != "running" else None,
        "drill_schedule": DrillSchedule.objects.filter(switch_id=switch.pk).first(),
        "drill_possible": switch.scope != GLOBAL.name,
        "drill_marked": DrillMark.objects.exists(),
        "unproven": queries.is_unproven(switch, now),
    }


def _with_steps() -> Any:
    return Drill.objects.select_related("job").prefetch_related("job__steps")


def _build_drill_row(drill: Drill) -> DrillRow:
    steps = sorted(drill.job.steps.all(), key=lambda step: step.index)
    present = next((step for step in steps if step.index == drill.job.step_index), None)
    outcome = _get_outcome(drill)
    return DrillRow(
        drill=drill,
        job=drill.job,
        outcome=outcome,
        said=drill.failure_reason if outcome == "running" else transitions.describe_outcome(drill),
        steps=tuple(DrillStep(STEPS.get(step.name, step.name), step_state(step)) for step in steps),
        now=STEPS.get(present.name, present.name) if outcome == "running" and present else "",
        engage=drill.measured.get("engage"),
        release=drill.measured.get("release"),
    )


def _get_outcome(drill: Drill) -> str:
    if drill.live:
        return "running"
    if drill.passed is None:
        return "cancelled"
    if not drill.passed:
        return "failed"
    return "looked" if drill.mode == live_drills.DRY else "passed"
