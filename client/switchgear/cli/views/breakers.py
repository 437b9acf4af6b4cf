"""Breakers: states, what is forced upon them, and what they went through."""

from collections.abc import Mapping, Sequence
from typing import Any

from switchgear.cli.words import Cell, Clock, Part, cell, joined, lines, many, ratio

COLUMNS = ("STATE", "*DEPENDENCY", "CRITICALITY", "INSTANCES", ">FAILING", "LAST CHANGE")
HISTORY_COLUMNS = ("AT", "INSTANCE", "FROM", "TO", "*CAUSE")
ORDER = ("open", "half_open", "closed", "unknown")
POLICY = ("breaker", "retry", "bulkhead", "fallback", "budget")

Breaker = Mapping[str, Any]

_STATES = {
    "open": Part("✖ OPEN", "bad"),
    "half_open": Part("◒ HALF OPEN", "warn"),
    "closed": Part("✔ closed", "good"),
    "unknown": Part("? unknown", "quiet"),
}
_MINUTES = {"open": Part("#", "bad"), "half_open": Part("+", "warn"), "closed": Part(".", "good")}


def state(name: str) -> Part:
    return _STATES.get(name, Part(name))


def is_silent(one: Breaker) -> bool:
    """Whether nothing is known of it, and nothing forced upon it."""
    return one["state"] == "unknown" and not one["override"] and not one["stale"]


def ordered(breakers: Sequence[Breaker]) -> list[Breaker]:
    """Those that need a look first."""
    ranks = {name: rank for rank, name in enumerate(ORDER)}
    return sorted(breakers, key=lambda one: (ranks.get(one["state"], 9), one["name"]))


def row(one: Breaker, clock: Clock) -> tuple[object, ...]:
    return (
        state(one["state"]),
        lines(Part(one["name"], "name"), override(one["override"], clock)),
        one["criticality"],
        instances(one),
        ratio(one["failure_rate"]),
        clock.ago(one["last_transition_at"]),
    )


def instances(one: Breaker) -> Cell:
    """`1 open, 7 closed`, and those that fell silent."""
    said = [
        f"{one['counts'][name]} {name.replace('_', '-')}"
        for name in ("open", "half_open", "closed")
        if one["counts"].get(name)
    ]
    stale = Part(f"{one['stale']} stale", "quiet") if one["stale"] else None
    return joined([*said, stale]) if said or stale else cell(Part("none heard", "quiet"))


def override(found: Mapping[str, Any] | None, clock: Clock) -> Cell:
    if not found:
        return cell()
    mode = Part(found["mode"].upper().replace("_", " "), "warn")
    head = joined([mode, f"ends {_ends(found, clock)}"])
    return lines(head, found["reason"], Part(f"by {found['set_by']}", "quiet"), applied(found))


def applied(found: Mapping[str, Any]) -> Cell:
    """`applied by 3 of 4 instances, not by core/a1`."""
    said = found.get("acknowledged")
    if not said or not said["instances"]:
        return cell(Part("no instance was heard from within 30 s", "quiet"))
    everybody = said["applied"] >= said["instances"]
    of = f"applied by {said['applied']} of {many(said['instances'], 'instance')}"
    late = f", not by {', '.join(said['stragglers'][:5])}" if said["stragglers"] else ""
    return cell(Part(of, "good" if everybody else "warn"), late)


def facts(one: Breaker, clock: Clock) -> list[tuple[str, object]]:
    return [
        ("instances", instances(one)),
        ("failing", ratio(one["failure_rate"]) if one["failure_rate"] is not None else None),
        ("last change", clock.exactly(one["last_transition_at"])),
        ("criticality", one["criticality"]),
        ("override", override(one["override"], clock)),
    ]


def policy(one: Mapping[str, Any]) -> list[tuple[str, object]]:
    """What is registered; what is left out has its default."""
    timeout = f"{one['timeout_ms']:,} ms" if one["timeout_ms"] else None
    told = [(name, _section(one.get(name))) for name in POLICY]
    return [("protocol", f"{one['protocol']}, {one['mode']}"), ("timeout", timeout), *told,
            ("owner", one["owner"]), ("runbook", one["runbook_url"])]  # fmt: skip


def forced(one: Mapping[str, Any], clock: Clock) -> list[tuple[str, object]]:
    """An override that was just set, or taken away."""
    return [
        ("why", one["reason"]),
        ("by", one["set_by"]),
        ("ends", _ends(one, clock) if not one["ended_at"] else None),
        ("ended", clock.exactly(one["ended_at"]) if one["ended_at"] else None),
        ("effect", applied(one)),
    ]


def history_row(one: Mapping[str, Any], clock: Clock) -> tuple[object, ...]:
    return (clock.exactly(one["at"]), one["instance"], state(one["from"]), state(one["to"]),
            one["cause"])  # fmt: skip


def minutes(rows: Sequence[Mapping[str, Any]]) -> Cell:
    """A letter a minute, the last one last: `.` closed, `+` half-open, `#` open."""
    return cell(*(_MINUTES.get(one["worst"], Part("?", "quiet")) for one in rows))


def _ends(found: Mapping[str, Any], clock: Clock) -> str:
    if found["mode"] == "reset":
        return "at once"
    return f"{clock.left(found['expires_at'])} ({clock.at(found['expires_at'])})"


def _section(found: Mapping[str, Any] | None) -> str | None:
    if not found:
        return None
    said = [f"{k} {_value(v)}" for k, v in found.items() if v not in (None, "", [], {})]
    return ", ".join(said)


def _value(value: object) -> str:
    return "/".join(map(str, value)) if isinstance(value, list) else str(value)
