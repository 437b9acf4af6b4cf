"""One line for the state of one resource. Pure.

The same text means that nothing worth a line changed.
"""

from collections.abc import Callable, Mapping
from typing import Any

from switchgear.cli.formatting import Cell, Clock, StyledText, cell, join, pluralize, single_line
from switchgear.cli.views import breakers, letters, ramps, slos, switches

TOPICS = ("switches", "ramps", "breakers", "dlq", "slo", "degradation")

Resource = Mapping[str, Any]


def resource_key(topic: str, one: Resource) -> str:
    """Return the resource's name in the console's live messages."""
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
    """Return True if it needs no line when watching begins."""
    return _NORMAL[topic](one)


def _switch(one: Resource, clock: Clock) -> Cell:
    head = [single_line(switches.state(one)), StyledText(one["id"], "name")]
    if one["state"] == "released":
        return join(head, "  ")
    ends = "permanent" if one["permanent"] else f"until {clock.short_time(one['expires_at'])}"
    heard = one["effect"] and one["effect"]["instances"]
    effect = cell("applied by ", switches.effect(one["effect"])) if heard else ""
    return join([*head, join([f"{one['reason']} ({one['engaged_by']})", ends, effect])], "  ")


def _ramp(one: Resource, clock: Clock) -> Cell:
    why = StyledText(one["hold_reason"] or one["error"] or "", "warn")
    told = join([f"ramp {one['id']}, {ramps.step_of(one)}", why], ": ")
    return join([single_line(ramps.state(one)), StyledText(one["switch"], "name"), told], "  ")


def _breaker(one: Resource, clock: Clock) -> Cell:
    forced = one["override"]
    mode = (
        StyledText(
            f"forced: {forced['mode']} until {clock.short_time(forced['expires_at'])}", "warn"
        )
        if forced
        else ""
    )
    told = join([breakers.instances(one), mode])
    return join([breakers.state(one["state"]), StyledText(one["name"], "name"), told], "  ")


def _letters(one: Resource, clock: Clock) -> Cell:
    if "away" in one:
        state = StyledText("✖ away", "bad") if one["away"] else StyledText("✔ answers", "good")
        return join([state, StyledText(f"Redis server {one['server']}", "name")], "  ")
    if "progress" in one:
        done = f"{one['progress']['done']:,} of {one['progress']['total']:,}"
        what = f"{one['action']} in {one['stream']}, {done}"
        told = join([what, StyledText(one["hold_reason"] or "", "warn")], ": ")
        return join(
            [single_line(letters.job_state(one)), StyledText(f"job {one['id']}", "name"), told],
            "  ",
        )
    style = "bad" if one["alerting"] else "warn" if one["depth"] else "good"
    alarm = StyledText("ALARM", "alarm") if one["alerting"] else ""
    depth = StyledText(pluralize(one["depth"], "letter"), style)
    return join([depth, StyledText(one["name"], "name"), alarm], "  ")


def _slo(one: Resource, clock: Clock) -> Cell:
    left = one["budget"]["remaining_ratio"] if "budget" in one else one["remaining_ratio"]
    budget = cell("budget left ", slos.budget(left))
    return join([slos.state(one["state"]), StyledText(one["name"], "name"), budget], "  ")


def _degradation(one: Resource, clock: Clock) -> Cell:
    return switches.degradation(one)


_LINES: Mapping[str, Callable[[Resource, Clock], Cell]] = {
    "switches": _switch,
    "ramps": _ramp,
    "breakers": _breaker,
    "dlq": _letters,
    "slo": _slo,
    "degradation": _degradation,
}
_NORMAL: Mapping[str, Callable[[Resource], bool]] = {
    "switches": lambda one: one["state"] == "released",
    "ramps": lambda one: one["state"] in ramps.OVER,
    "breakers": lambda one: one["state"] in ("closed", "unknown") and not one["override"],
    "dlq": lambda one: not one.get("depth", 0) and not one.get("away") and "progress" not in one,
    "slo": lambda one: one["state"] != "firing",
    "degradation": lambda one: one["level"] == 0,
}
