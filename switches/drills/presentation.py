"""Template context of drills: table rows with steps, and the drill section of a switch page."""

from datetime import datetime
from typing import Any

from controlplane.core.jobs.models import JobStep
from switches.episodes import live_drills
from switches.models import Drill, DrillMark, DrillSchedule, Switch
from switches.scopes import GLOBAL

from . import queries, transitions

STEPS = {
    "look": "Find the drill instances",
    "order": "Wait for an emergency order",
    "engage": "Engage",
    "engaged_applied": "Wait until they block",
    "release": "Release",
    "released_applied": "Wait until they let traffic flow",
    "record": "Record the result",
}
SKIPPED = "skipped"


def step_state(step: JobStep) -> str:
    """Return the job step's state, or `skipped` if the step had nothing to do."""
    return SKIPPED if step.data.get(SKIPPED) else step.state


def switch_context(switch: Switch, now: datetime) -> dict[str, Any]:
    drills = Drill.objects.select_related("job").prefetch_related("job__steps")
    newest = drills.filter(switch_id=switch.pk).order_by("-job_id").first()
    last = build_drill_row(newest) if newest else None
    is_running = last is not None and last["outcome"] == "running"
    return {
        "drill": last if is_running else None,
        "last_drill": None if is_running else last,
        "drill_schedule": DrillSchedule.objects.filter(switch_id=switch.pk).first(),
        "drill_possible": switch.scope != GLOBAL.name,
        "drill_marked": DrillMark.objects.exists(),
        "unproven": queries.is_unproven(switch, now),
    }


def build_drill_row(drill: Drill) -> dict[str, Any]:
    """Return a drill, fetched with its job and job steps, as a table row.

    `outcome` is `running`, `passed`, `failed`, `cancelled`, or `looked` (a dry drill that found
    instances). `running_step` is the title of the running step, or empty. `engage` and `release`
    are the measurements of the steps with these names, or None.
    """
    steps = sorted(drill.job.steps.all(), key=lambda step: step.index)
    present = next((step for step in steps if step.index == drill.job.step_index), None)
    outcome = _get_outcome(drill)
    is_running = outcome == "running"
    summary = drill.failure_reason if is_running else transitions.describe_outcome(drill)
    if is_running and drill.mode == live_drills.EMERGENCY and not summary:
        summary = transitions.HOW_TO_ORDER
    return {
        "drill": drill,
        "job": drill.job,
        "outcome": outcome,
        "summary": summary,
        "steps": [
            {"title": STEPS.get(step.name, step.name), "state": step_state(step)} for step in steps
        ],
        "running_step": STEPS.get(present.name, present.name) if is_running and present else "",
        "engage": drill.measured.get("engage"),
        "release": drill.measured.get("release"),
    }


def _get_outcome(drill: Drill) -> str:
    if drill.live:
        return "running"
    if drill.passed is None:
        return "cancelled"
    if not drill.passed:
        return "failed"
    return "looked" if drill.mode == live_drills.DRY else "passed"
