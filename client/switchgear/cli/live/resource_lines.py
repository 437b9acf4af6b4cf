"""A line of text for the state of each kind of live resource. Pure."""

from collections.abc import Callable, Mapping
from typing import Any

from switchgear.cli.formatters import Cell, Clock, StyledText, cell, join, pluralize, single_line
from switchgear.cli.views import breakers, letters, ramps, slos, switches

TOPICS = ("switches", "ramps", "breakers", "dlq", "slo", "degradation")

Resource = Mapping[str, Any]


def resource_key(topic: str, one: Resource) -> str:
    """Return the resource's id in live messages."""
    if topic == "degradation":
        return topic
    if topic == "dlq":
        if "progress" in one:
            return f"job:{one['id']}"
        return f"server:{one['server']}" if "away" in one else f"{one['server']}/{one['name']}"
    return str(one["name"] if topic in ("breakers", "slo") else one["id"])


def format_line(topic: str, one: Resource, clock: Clock) -> Cell:
    return _LINES[topic](one, clock)


def is_normal(topic: str, one: Resource) -> bool:
    """Return True if the resource's state is normal, so that it is not printed at the start."""
    return _NORMAL[topic](one)


def _format_switch(one: Resource, clock: Clock) -> Cell:
    head = [single_line(switches.format_state(one)), StyledText(one["id"], "name")]
    if one["state"] == "released":
        return join(head, "  ")
    ends = "permanent" if one["permanent"] else f"until {clock.short_time(one['expires_at'])}"
    has_reports = one["effect"] and one["effect"]["instances"]
    effect = cell("applied by ", switches.format_effect(one["effect"])) if has_reports else ""
    return join([*head, join([f"{one['reason']} ({one['engaged_by']})", ends, effect])], "  ")


def _format_ramp(one: Resource, clock: Clock) -> Cell:
    why = StyledText(one["hold_reason"] or one["error"] or "", "warn")
    details = join([f"ramp {one['id']}, {ramps.step_of(one)}", why], ": ")
    return join(
        [single_line(ramps.format_state(one)), StyledText(one["switch"], "name"), details], "  "
    )


def _format_breaker(one: Resource, clock: Clock) -> Cell:
    forced = one["override"]
    mode = (
        StyledText(
            f"forced: {forced['mode']} until {clock.short_time(forced['expires_at'])}", "warn"
        )
        if forced
        else ""
    )
    details = join([breakers.format_instances(one), mode])
    return join(
        [breakers.format_state(one["state"]), StyledText(one["name"], "name"), details], "  "
    )


def _format_letters(one: Resource, clock: Clock) -> Cell:
    if "away" in one:
        state = StyledText("✖ away", "bad") if one["away"] else StyledText("✔ answers", "good")
        return join([state, StyledText(f"Redis server {one['server']}", "name")], "  ")
    if "progress" in one:
        done = f"{one['progress']['done']:,} of {one['progress']['total']:,}"
        what = f"{one['action']} in {one['stream']}, {done}"
        details = join([what, StyledText(one["hold_reason"] or "", "warn")], ": ")
        return join(
            [
                single_line(letters.format_job_state(one)),
                StyledText(f"job {one['id']}", "name"),
                details,
            ],
            "  ",
        )
    style = "bad" if one["alerting"] else "warn" if one["depth"] else "good"
    alarm = StyledText("ALARM", "alarm") if one["alerting"] else ""
    depth = StyledText(pluralize(one["depth"], "letter"), style)
    return join([depth, StyledText(one["name"], "name"), alarm], "  ")


def _format_slo(one: Resource, clock: Clock) -> Cell:
    left = one["budget"]["remaining_ratio"] if "budget" in one else one["remaining_ratio"]
    budget = cell("budget left ", slos.format_budget(left))
    return join([slos.format_state(one["state"]), StyledText(one["name"], "name"), budget], "  ")


_LINES: Mapping[str, Callable[[Resource, Clock], Cell]] = {
    "switches": _format_switch,
    "ramps": _format_ramp,
    "breakers": _format_breaker,
    "dlq": _format_letters,
    "slo": _format_slo,
    "degradation": lambda one, _clock: switches.format_degradation(one),
}
_NORMAL: Mapping[str, Callable[[Resource], bool]] = {
    "switches": lambda one: one["state"] == "released",
    "ramps": lambda one: one["state"] in ramps.OVER,
    "breakers": lambda one: one["state"] in ("closed", "unknown") and not one["override"],
    "dlq": lambda one: not one.get("depth", 0) and not one.get("away") and "progress" not in one,
    "slo": lambda one: one["state"] != "firing",
    "degradation": lambda one: one["level"] == 0,
}
