"""Breakers: states, overrides, policies and history."""

from collections.abc import Mapping, Sequence
from typing import Any

from switchgear.cli.formatting import (
    Cell,
    Clock,
    StyledText,
    cell,
    format_ratio,
    join,
    pluralize,
    stack,
)

COLUMNS = ("STATE", "*DEPENDENCY", "CRITICALITY", "INSTANCES", ">FAILING", "LAST CHANGE")
HISTORY_COLUMNS = ("AT", "INSTANCE", "FROM", "TO", "*CAUSE")
ORDER = ("open", "half_open", "closed", "unknown")
POLICY = ("breaker", "retry", "bulkhead", "fallback", "budget")

Breaker = Mapping[str, Any]

_STATES = {
    "open": StyledText("✖ OPEN", "bad"),
    "half_open": StyledText("◒ HALF OPEN", "warn"),
    "closed": StyledText("✔ closed", "good"),
    "unknown": StyledText("? unknown", "quiet"),
}
_MINUTES = {
    "open": StyledText("#", "bad"),
    "half_open": StyledText("+", "warn"),
    "closed": StyledText(".", "good"),
}


def state(name: str) -> StyledText:
    return _STATES.get(name, StyledText(name))


def is_silent(one: Breaker) -> bool:
    """Return True if nothing is known of it and nothing is forced."""
    return one["state"] == "unknown" and not one["override"] and not one["stale"]


def ordered(breakers: Sequence[Breaker]) -> list[Breaker]:
    """Sort the most critical ones first."""
    ranks = {name: rank for rank, name in enumerate(ORDER)}
    return sorted(breakers, key=lambda one: (ranks.get(one["state"], 9), one["name"]))


def row(one: Breaker, clock: Clock) -> tuple[object, ...]:
    return (
        state(one["state"]),
        stack(StyledText(one["name"], "name"), override(one["override"], clock)),
        one["criticality"],
        instances(one),
        format_ratio(one["failure_rate"]),
        clock.ago(one["last_transition_at"]),
    )


def instances(one: Breaker) -> Cell:
    """Return `1 open, 7 closed`, and the number of silent instances."""
    said = [
        f"{one['counts'][name]} {name.replace('_', '-')}"
        for name in ("open", "half_open", "closed")
        if one["counts"].get(name)
    ]
    stale = StyledText(f"{one['stale']} stale", "quiet") if one["stale"] else None
    return join([*said, stale]) if said or stale else cell(StyledText("none heard", "quiet"))


def override(found: Mapping[str, Any] | None, clock: Clock) -> Cell:
    if not found:
        return cell()
    mode = StyledText(found["mode"].upper().replace("_", " "), "warn")
    head = join([mode, f"ends {_expiry_text(found, clock)}"])
    return stack(
        head, found["reason"], StyledText(f"by {found['set_by']}", "quiet"), applied(found)
    )


def applied(found: Mapping[str, Any]) -> Cell:
    """Return `applied by 3 of 4 instances, not by core/a1`."""
    said = found.get("acknowledged")
    if not said or not said["instances"]:
        return cell(StyledText("no instance was heard from within 30 s", "quiet"))
    everybody = said["applied"] >= said["instances"]
    of = f"applied by {said['applied']} of {pluralize(said['instances'], 'instance')}"
    late = f", not by {', '.join(said['stragglers'][:5])}" if said["stragglers"] else ""
    return cell(StyledText(of, "good" if everybody else "warn"), late)


def facts(one: Breaker, clock: Clock) -> list[tuple[str, object]]:
    return [
        ("instances", instances(one)),
        ("failing", format_ratio(one["failure_rate"]) if one["failure_rate"] is not None else None),
        ("last change", clock.exact_time(one["last_transition_at"])),
        ("criticality", one["criticality"]),
        ("override", override(one["override"], clock)),
    ]


def policy(one: Mapping[str, Any]) -> list[tuple[str, object]]:
    """Return what is configured; sections left out have their defaults."""
    timeout = f"{one['timeout_ms']:,} ms" if one["timeout_ms"] else None
    told = [(name, _section(one.get(name))) for name in POLICY]
    return [("protocol", f"{one['protocol']}, {one['mode']}"), ("timeout", timeout), *told,
            ("owner", one["owner"]), ("runbook", one["runbook_url"])]  # fmt: skip


def override_facts(one: Mapping[str, Any], clock: Clock) -> list[tuple[str, object]]:
    """Return the facts of an override that was just set or cleared."""
    return [
        ("why", one["reason"]),
        ("by", one["set_by"]),
        ("ends", _expiry_text(one, clock) if not one["ended_at"] else None),
        ("ended", clock.exact_time(one["ended_at"]) if one["ended_at"] else None),
        ("effect", applied(one)),
    ]


def history_row(one: Mapping[str, Any], clock: Clock) -> tuple[object, ...]:
    return (clock.exact_time(one["at"]), one["instance"], state(one["from"]), state(one["to"]),
            one["cause"])  # fmt: skip


def minutes(rows: Sequence[Mapping[str, Any]]) -> Cell:
    """Return a character a minute, oldest first: `.` closed, `+` half-open, `#` open."""
    return cell(*(_MINUTES.get(one["worst"], StyledText("?", "quiet")) for one in rows))


def _expiry_text(found: Mapping[str, Any], clock: Clock) -> str:
    if found["mode"] == "reset":
        return "at once"
    return f"{clock.time_left(found['expires_at'])} ({clock.short_time(found['expires_at'])})"


def _section(found: Mapping[str, Any] | None) -> str | None:
    if not found:
        return None
    said = [f"{k} {_value(v)}" for k, v in found.items() if v not in (None, "", [], {})]
    return ", ".join(said)


def _value(value: object) -> str:
    return "/".join(map(str, value)) if isinstance(value, list) else str(value)
