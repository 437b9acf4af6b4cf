"""Ramps, their steps, and what their gates said."""

from collections.abc import Mapping
from typing import Any

from switchgear.cli.words import Cell, Clock, Part, cell, joined, lines, percent, span

COLUMNS = (">RAMP", "STATE", "*SWITCH, AND WHY", "STEP", "GOES ON")
STEP_COLUMNS = ("STEP", ">SHARE", "STATE", "STARTED", "UNTIL", "*GATES")
OVER = ("completed", "aborted", "failed")

Ramp = Mapping[str, Any]

_STATES = {
    "pending_approval": Part("⚑ waits for approval", "warn"),
    "running": Part("◒ running", "warn"),
    "holding": Part("⚠ holding", "warn"),
    "paused": Part("◌ paused", "warn"),
    "completed": Part("✔ completed", "good"),
    "aborted": Part("✖ aborted", "bad"),
    "failed": Part("✖ FAILED", "alarm"),
}
_STEPS = {"dwelling": "warn", "passed": "good", "failed": "bad", "pending": "quiet"}
_VERDICTS = {
    "pass": Part("✔ ", "good"),
    "fail": Part("✖ ", "bad"),
    "no_data": Part("? ", "warn"),
    "waiting": Part("⚑ ", "warn"),
}
_GATES = {
    "slo": "SLO {slo}: burn rate over {window} at most {max_burn_rate}",
    "breaker": "breaker {dependency}",
    "manual": "a person's approval",
    "samples": "{min_events} events of {slo}",
    "external": "{gate}",
}


def state(one: Ramp) -> Cell:
    stuck = Part("STUCK", "alarm") if one["stuck"] else None
    return lines(_STATES.get(one["state"], Part(one["state"])), stuck)


def row(one: Ramp, clock: Clock) -> tuple[object, ...]:
    by = Part(f"by {one['requested_by']}: {one['justification']}", "quiet")
    return (
        one["id"],
        state(one),
        lines(Part(one["switch"], "name"), by, Part(one["hold_reason"], "warn")),
        step_of(one),
        cell(goes_on(one, clock)),
    )


def step_of(one: Ramp) -> str:
    """`25 %, 2 of 3`."""
    return f"{percent(one['allow_percent'])}, {one['step_index'] + 1} of {len(one['steps'])}"


def goes_on(one: Ramp, clock: Clock) -> str:
    if one["state"] in OVER:
        return f"over {clock.ago(one['finished_at'])}"
    if one["state"] == "running" and one["step_index"] < len(one["steps"]):
        until = one["steps"][one["step_index"]]["dwell_until"]
        return clock.left(until) if until and not clock.is_over(until) else "now"
    return "-"


def facts(one: Ramp, clock: Clock) -> list[tuple[str, object]]:
    return [
        ("asked for by", one["requested_by"]),
        ("because", one["justification"]),
        ("step", step_of(one)),
        ("goes on", goes_on(one, clock) if one["state"] == "running" else None),
        ("held by", Part(one["hold_reason"], "warn")),
        ("approval", f"request {one['approval']}" if one["approval"] else None),
        ("against", ", ".join(one["overridden"])),
        ("began", clock.exactly(one["created_at"])),
        ("over", clock.exactly(one["finished_at"]) if one["finished_at"] else None),
        ("outcome", one["outcome"]),
        ("error", Part(one["error"] if one["error"] != one["outcome"] else "", "bad")),
    ]


def step_row(number: int, step: Mapping[str, Any], clock: Clock) -> tuple[object, ...]:
    until = step["dwell_until"]
    ends = clock.second(until) if until else span(float(step["dwell_seconds"]))
    return (
        number,
        percent(step["percent"]),
        Part(step["state"], _STEPS.get(step["state"], "")),
        clock.second(step["started_at"]) if step["started_at"] else "-",
        ends,
        joined(map(gate, step["gates"]), "\n") if step["gates"] else Part("none", "quiet"),
    )


def gate(one: Mapping[str, Any]) -> Cell:
    """`✔ SLO core-availability: burn rate over 5m at most 1`, with why it does not pass."""
    name = _GATES.get(one["type"], "{type}").format_map(one)
    why = one.get("evidence", {}).get("why") if one["verdict"] != "pass" else None
    said = Part(f": {str(why).rstrip('.')}", "quiet") if why else ""
    return cell(_VERDICTS.get(one["verdict"], Part("? ")), name, said)


def told(one: Ramp, clock: Clock) -> str:
    """How it stands, in words that stay the same while it does."""
    why = f": {one['hold_reason']}" if one["hold_reason"] else ""
    until = ""
    if one["state"] == "running" and one["step_index"] < len(one["steps"]):
        until = f" until {clock.second(one['steps'][one['step_index']]['dwell_until'])}"
    return f"{one['state'].replace('_', ' ')}{until}{why}"
