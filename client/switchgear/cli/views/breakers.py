"""Table rows, and pairs of name and value, that show breakers."""

from collections.abc import Mapping, Sequence
from typing import Any

from switchgear.cli.formatters import (
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


def format_state(name: str) -> StyledText:
    return _STATES.get(name, StyledText(name))


def is_silent(one: Breaker) -> bool:
    """Return True if no instance reports the breaker and no override is live."""
    return one["state"] == "unknown" and not one["override"] and not one["stale"]


def breaker_row(one: Breaker, clock: Clock) -> tuple[object, ...]:
    return (
        format_state(one["state"]),
        stack(StyledText(one["name"], "name"), format_override(one["override"], clock)),
        one["criticality"],
        format_instances(one),
        format_ratio(one["failure_rate"]),
        clock.ago(one["last_transition_at"]),
    )


def format_instances(one: Breaker) -> Cell:
    """Return the instances by state, such as `1 open, 7 closed`, and the number of stale ones."""
    parts = [
        f"{one['counts'][name]} {name.replace('_', '-')}"
        for name in ("open", "half_open", "closed")
        if one["counts"].get(name)
    ]
    stale = StyledText(f"{one['stale']} stale", "quiet") if one["stale"] else None
    return join([*parts, stale]) if parts or stale else cell(StyledText("not reported", "quiet"))


def format_override(found: Mapping[str, Any] | None, clock: Clock) -> Cell:
    if not found:
        return cell()
    mode = StyledText(found["mode"].upper().replace("_", " "), "warn")
    head = join([mode, f"ends {_expiry_text(found, clock)}"])
    return stack(
        head,
        found["reason"],
        StyledText(f"by {found['set_by']}", "quiet"),
        format_acknowledgement(found),
    )


def format_acknowledgement(found: Mapping[str, Any]) -> Cell:
    """Return the effect of an override: `applied by 3 of 4 instances, not by core/a1`."""
    parts = found.get("acknowledged")
    if not parts or not parts["instances"]:
        return cell(StyledText("no instance of the caller is reporting", "quiet"))
    everybody = parts["applied"] >= parts["instances"]
    of = f"applied by {parts['applied']} of {pluralize(parts['instances'], 'instance')}"
    late = f"; not by {', '.join(parts['stragglers'][:5])}" if parts["stragglers"] else ""
    return cell(StyledText(of, "good" if everybody else "warn"), late)


def breaker_facts(one: Breaker, clock: Clock) -> list[tuple[str, object]]:
    return [
        ("instances", format_instances(one)),
        ("failing", format_ratio(one["failure_rate"]) if one["failure_rate"] is not None else None),
        ("last change", clock.exact_time(one["last_transition_at"])),
        ("criticality", one["criticality"]),
        ("override", format_override(one["override"], clock)),
    ]


def policy_facts(one: Mapping[str, Any]) -> list[tuple[str, object]]:
    """Return a dependency's policy as pairs of name and value; the value is None if not set."""
    timeout = f"{one['timeout_ms']:,} ms" if one["timeout_ms"] else None
    sections = [(name, _format_section(one.get(name))) for name in POLICY]
    return [("protocol", f"{one['protocol']}, {one['mode']}"), ("timeout", timeout), *sections,
            ("owner", one["owner"]), ("runbook", one["runbook_url"])]  # fmt: skip


def override_facts(one: Mapping[str, Any], clock: Clock) -> list[tuple[str, object]]:
    """Return pairs of name and value for an override that was just set or cleared."""
    return [
        ("why", one["reason"]),
        ("by", one["set_by"]),
        ("ends", _expiry_text(one, clock) if not one["ended_at"] else None),
        ("ended", clock.exact_time(one["ended_at"]) if one["ended_at"] else None),
        ("effect", format_acknowledgement(one)),
    ]


def history_row(one: Mapping[str, Any], clock: Clock) -> tuple[object, ...]:
    states = format_state(one["from"]), format_state(one["to"])
    return (clock.exact_time(one["at"]), one["instance"], *states, one["cause"])


def format_minutes(rows: Sequence[Mapping[str, Any]]) -> Cell:
    """Return one character per minute, oldest first: `.` closed, `+` half-open, `#` open."""
    return cell(*(_MINUTES.get(one["worst"], StyledText("?", "quiet")) for one in rows))


def _expiry_text(found: Mapping[str, Any], clock: Clock) -> str:
    if found["mode"] == "reset":
        return "immediately"
    return f"{clock.time_left(found['expires_at'])} ({clock.short_time(found['expires_at'])})"


def _format_section(found: Mapping[str, Any] | None) -> str | None:
    if not found:
        return None
    return ", ".join(
        f"{name} {'/'.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in found.items()
        if value not in (None, "", [], {})
    )
