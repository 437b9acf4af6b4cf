"""A line of text for the state of each kind of live resource. Pure."""

from collections.abc import Callable, Mapping
from typing import Any

from switchgear.cli.formatters import Cell, Clock, StyledText, cell, join, pluralize, single_line
from switchgear.cli.views import breakers, letters, ramps, slos, switches

TOPICS = ("switches", "ramps", "breakers", "dlq", "slo", "degradation")

Resource = Mapping[str, Any]


def resource_key(topic: str, one: Resource) -> str:
    """Return the id by which live messages of `topic` identify the resource `one`."""
    if topic == "degradation":
        return topic
    if topic == "dlq":
        if "progress" in one:
            return f"job:{one['id']}"
        return f"server:{one['server']}" if "away" in one else f"{one['server']}/{one['name']}"
    return str(one["name"] if topic in ("breakers", "slo") else one["id"])


def _format_switch(one: Resource, clock: Clock) -> Cell:
    state = single_line(switches.format_state(one))
    if one["state"] == "released":
        return _join_line(state, one["id"])
    ends = "permanent" if one["permanent"] else f"until {clock.short_time(one['expires_at'])}"
    has_reports = one["effect"] and one["effect"]["instances"]
    effect = cell("applied by ", switches.format_effect(one["effect"])) if has_reports else ""
    details = join([f"{one['reason']} ({one['engaged_by']})", ends, effect])
    return _join_line(state, one["id"], details)


def _format_ramp(one: Resource, clock: Clock) -> Cell:
    why = StyledText(one["hold_reason"] or one["error"] or "", "warn")
    details = join([f"ramp {one['id']}, {ramps.step_of(one)}", why], ": ")
    return _join_line(single_line(ramps.format_state(one)), one["switch"], details)


def _format_breaker(one: Resource, clock: Clock) -> Cell:
    forced = one["override"]
    mode = ""
    if forced:
        mode = f"forced: {forced['mode']} until {clock.short_time(forced['expires_at'])}"
    details = join([breakers.format_instances(one), StyledText(mode, "warn")])
    return _join_line(breakers.format_state(one["state"]), one["name"], details)


def _format_letters(one: Resource, clock: Clock) -> Cell:
    if "away" in one:
        state = (
            StyledText("✖ unavailable", "bad") if one["away"] else StyledText("✔ available", "good")
        )
        return _join_line(state, f"Redis server {one['server']}")
    if "progress" in one:
        done = f"{one['progress']['done']:,} of {one['progress']['total']:,}"
        what = f"{one['action']} in {one['stream']}, {done}"
        details = join([what, StyledText(one["hold_reason"] or "", "warn")], ": ")
        return _join_line(single_line(letters.format_job_state(one)), f"job {one['id']}", details)
    style = "bad" if one["alerting"] else "warn" if one["depth"] else "good"
    alarm = StyledText("ALARM", "alarm") if one["alerting"] else ""
    depth = StyledText(pluralize(one["depth"], "letter"), style)
    return _join_line(depth, one["name"], alarm)


def _format_slo(one: Resource, clock: Clock) -> Cell:
    left = one["budget"]["remaining_ratio"] if "budget" in one else one["remaining_ratio"]
    budget = cell("budget left ", slos.format_budget(left))
    return _join_line(slos.format_state(one["state"]), one["name"], budget)


def _join_line(state: object, name: Any, details: object = "") -> Cell:
    return join([state, StyledText(name, "name"), details], "  ")


FORMATTERS: Mapping[str, Callable[[Resource, Clock], Cell]] = {
    "switches": _format_switch,
    "ramps": _format_ramp,
    "breakers": _format_breaker,
    "dlq": _format_letters,
    "slo": _format_slo,
    "degradation": lambda one, _clock: switches.format_degradation(one),
}
NORMAL: Mapping[str, Callable[[Resource], bool]] = {
    "switches": lambda one: one["state"] == "released",
    "ramps": lambda one: one["state"] in ramps.OVER,
    "breakers": lambda one: one["state"] in ("closed", "unknown") and not one["override"],
    "dlq": lambda one: not one.get("depth", 0) and not one.get("away") and "progress" not in one,
    "slo": lambda one: one["state"] != "firing",
    "degradation": lambda one: one["level"] == 0,
}
"""Checks for the normal states of resources, which are not printed at the start."""
