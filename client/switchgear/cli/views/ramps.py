"""Table rows, and pairs of name and value, that show ramps, their steps and gates."""

from collections.abc import Mapping
from typing import Any

from switchgear.cli.formatters import (
    Cell,
    Clock,
    StyledText,
    cell,
    format_duration,
    format_percent,
    join,
    stack,
)

COLUMNS = (">RAMP", "STATE", "*SWITCH AND REASON", "STEP", "NEXT STEP")
STEP_COLUMNS = ("STEP", ">SHARE", "STATE", "STARTED", "UNTIL", "*GATES")
OVER = ("completed", "aborted", "failed")

Ramp = Mapping[str, Any]

_STATES = {
    "pending_approval": StyledText("⚑ waiting for approval", "warn"),
    "running": StyledText("◒ running", "warn"),
    "holding": StyledText("⚠ holding", "warn"),
    "paused": StyledText("◌ paused", "warn"),
    "completed": StyledText("✔ completed", "good"),
    "aborted": StyledText("✖ aborted", "bad"),
    "failed": StyledText("✖ FAILED", "alarm"),
}
_STEPS = {"dwelling": "warn", "passed": "good", "failed": "bad", "pending": "quiet"}
_VERDICTS = {
    "pass": StyledText("✔ ", "good"),
    "fail": StyledText("✖ ", "bad"),
    "no_data": StyledText("? ", "warn"),
    "waiting": StyledText("⚑ ", "warn"),
}


def format_state(one: Ramp) -> Cell:
    stuck = StyledText("STUCK", "alarm") if one["stuck"] else None
    return stack(_STATES.get(one["state"], StyledText(one["state"])), stuck)


def ramp_row(one: Ramp, clock: Clock) -> tuple[object, ...]:
    by = StyledText(f"by {one['requested_by']}: {one['justification']}", "quiet")
    return (
        one["id"],
        format_state(one),
        stack(StyledText(one["switch"], "name"), by, StyledText(one["hold_reason"], "warn")),
        step_of(one),
        cell(continues_at(one, clock)),
    )


def step_of(one: Ramp) -> str:
    """Return the current step of a ramp, such as `25 %, 2 of 3`."""
    return f"{format_percent(one['allow_percent'])}, {one['step_index'] + 1} of {len(one['steps'])}"


def continues_at(one: Ramp, clock: Clock) -> str:
    if one["state"] in OVER:
        return f"finished {clock.ago(one['finished_at'])}"
    if one["state"] == "running" and one["step_index"] < len(one["steps"]):
        until = one["steps"][one["step_index"]]["dwell_until"]
        return clock.time_left(until) if until and not clock.is_over(until) else "now"
    return "-"


def ramp_facts(one: Ramp, clock: Clock) -> list[tuple[str, object]]:
    return [
        ("requested by", one["requested_by"]),
        ("reason", one["justification"]),
        ("step", step_of(one)),
        ("next step", continues_at(one, clock) if one["state"] == "running" else None),
        ("holding", StyledText(one["hold_reason"], "warn")),
        ("approval", f"request {one['approval']}" if one["approval"] else None),
        ("overrides", ", ".join(one["overridden"])),
        ("started", clock.exact_time(one["created_at"])),
        ("finished", clock.exact_time(one["finished_at"]) if one["finished_at"] else None),
        ("outcome", one["outcome"]),
        ("error", StyledText(one["error"] if one["error"] != one["outcome"] else "", "bad")),
    ]


def step_row(number: int, step: Mapping[str, Any], clock: Clock) -> tuple[object, ...]:
    until = step["dwell_until"]
    ends = clock.time_of_day(until) if until else format_duration(float(step["dwell_seconds"]))
    gates = join(map(format_gate, step["gates"]), "\n")
    return (
        number,
        format_percent(step["percent"]),
        StyledText(step["state"], _STEPS.get(step["state"], "")),
        clock.time_of_day(step["started_at"]) if step["started_at"] else "-",
        ends,
        gates if step["gates"] else StyledText("none", "quiet"),
    )


def format_gate(one: Mapping[str, Any]) -> Cell:
    """Return a gate with its latest result, such as `✖ breaker core → oracle: half-open`."""
    finding = one.get("finding") or one.get("summary", one["type"])
    return cell(_VERDICTS.get(one["verdict"], StyledText("? ")), finding)


def progress_text(one: Ramp, clock: Clock) -> str:
    """Return a ramp's state as text that changes only with the state.

    Therefore it has the time at which the dwell time ends, not the time left.
    """
    why = f": {one['hold_reason']}" if one["hold_reason"] else ""
    until = ""
    if one["state"] == "running" and one["step_index"] < len(one["steps"]):
        until = f" until {clock.time_of_day(one['steps'][one['step_index']]['dwell_until'])}"
    return f"{one['state'].replace('_', ' ')}{until}{why}"
