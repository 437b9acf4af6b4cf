"""One line for what one resource is now. Pure.

The same text means that nothing changed which is worth a line.
"""

from collections.abc import Callable, Mapping
from typing import Any

from switchgear.cli.views import breakers, letters, ramps, slos, switches
from switchgear.cli.words import Cell, Clock, Part, cell, flat, joined, many

TOPICS = ("switches", "ramps", "breakers", "dlq", "slo", "degradation")

Resource = Mapping[str, Any]


def key(topic: str, one: Resource) -> str:
    """Which resource it is, as the console calls it in its live messages."""
    if topic == "degradation":
        return topic
    if topic == "dlq":
        if "progress" in one:
            return f"job:{one['id']}"
        return f"server:{one['server']}" if "away" in one else f"{one['server']}/{one['name']}"
    return str(one["name"] if topic in ("breakers", "slo") else one["id"])


def line(topic: str, one: Resource, clock: Clock) -> Cell:
    return _LINES[topic](one, clock)


def is_normal(topic: str, one: Resource) -> bool:
    """Whether it needs no line of its own when somebody begins to watch."""
    return _NORMAL[topic](one)


def _switch(one: Resource, clock: Clock) -> Cell:
    head = [flat(switches.state(one)), Part(one["id"], "name")]
    if one["state"] == "released":
        return joined(head, "  ")
    ends = "permanent" if one["permanent"] else f"until {clock.at(one['expires_at'])}"
    heard = one["effect"] and one["effect"]["instances"]
    effect = cell("applied by ", switches.effect(one["effect"])) if heard else ""
    return joined([*head, joined([f"{one['reason']} ({one['engaged_by']})", ends, effect])], "  ")


def _ramp(one: Resource, clock: Clock) -> Cell:
    why = Part(one["hold_reason"] or one["error"] or "", "warn")
    told = joined([f"ramp {one['id']}, {ramps.step_of(one)}", why], ": ")
    return joined([flat(ramps.state(one)), Part(one["switch"], "name"), told], "  ")


def _breaker(one: Resource, clock: Clock) -> Cell:
    forced = one["override"]
    mode = (
        Part(f"forced: {forced['mode']} until {clock.at(forced['expires_at'])}", "warn")
        if forced
        else ""
    )
    told = joined([breakers.instances(one), mode])
    return joined([breakers.state(one["state"]), Part(one["name"], "name"), told], "  ")


def _letters(one: Resource, clock: Clock) -> Cell:
    if "away" in one:
        state = Part("✖ away", "bad") if one["away"] else Part("✔ answers", "good")
        return joined([state, Part(f"Redis server {one['server']}", "name")], "  ")
    if "progress" in one:
        done = f"{one['progress']['done']:,} of {one['progress']['total']:,}"
        what = f"{one['action']} in {one['stream']}, {done}"
        told = joined([what, Part(one["hold_reason"] or "", "warn")], ": ")
        return joined([flat(letters.job_state(one)), Part(f"job {one['id']}", "name"), told], "  ")
    style = "bad" if one["alerting"] else "warn" if one["depth"] else "good"
    alarm = Part("ALARM", "alarm") if one["alerting"] else ""
    depth = Part(many(one["depth"], "letter"), style)
    return joined([depth, Part(one["name"], "name"), alarm], "  ")


def _slo(one: Resource, clock: Clock) -> Cell:
    left = one["budget"]["remaining_ratio"] if "budget" in one else one["remaining_ratio"]
    budget = cell("budget left ", slos.budget(left))
    return joined([slos.state(one["state"]), Part(one["name"], "name"), budget], "  ")


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
