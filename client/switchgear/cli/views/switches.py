"""Table rows, and pairs of name and value, that show switches."""

from collections.abc import Mapping, Sequence
from typing import Any

from switchgear.cli.formatters import (
    Cell,
    Clock,
    StyledText,
    cell,
    format_percent,
    join,
    pluralize,
    stack,
)
from switchgear.evaluation.scopes import ORDER

COLUMNS = ("STATE", "*SWITCH AND REASON", "SINCE", "EXPIRES", "EFFECT")
HISTORY_COLUMNS = ("ENGAGED", "*REASON", "LASTED", "ENDED")
LEVELS = ("good", "warn", "bad", "alarm")
MAX_NAMED = 5

Switch = Mapping[str, Any]


def format_state(one: Switch) -> Cell:
    """Return a switch's state with an icon and in color; while ramping also its percentage."""
    overdue = StyledText(" OVERDUE ", "alarm") if one.get("overdue") else None
    match one["state"]:
        case "engaged":
            return stack(StyledText("✖ ENGAGED", "bad"), overdue)
        case "ramping":
            return stack(
                StyledText(f"◒ RAMPING {format_percent(one['allow_percent'])}", "warn"), overdue
            )
        case _:
            return cell(StyledText("✔ released", "good"))


def sort_switches(switches: Sequence[Switch]) -> list[Switch]:
    """Return the switches in the order in which a check evaluates them, global first."""
    return sorted(switches, key=lambda one: (ORDER.get(one["scope"], len(ORDER)), one["id"]))


def switch_row(one: Switch, clock: Clock) -> tuple[Cell, ...]:
    by = StyledText(f"by {one['engaged_by']}", "quiet") if one["engaged_by"] else None
    return (
        format_state(one),
        stack(StyledText(one["id"], "name"), one["reason"], by),
        stack(
            clock.ago(one["engaged_at"]), StyledText(clock.short_time(one["engaged_at"]), "quiet")
        ),
        format_expiry(one, clock),
        format_effect(one.get("effect")),
    )


def history_row(one: Mapping[str, Any], clock: Clock) -> tuple[Cell, ...]:
    """Return the row of an episode in a switch's history: begin, reason, duration and end."""
    by = StyledText(f"by {one['engaged_by']['type']}:{one['engaged_by']['name']}", "quiet")
    no_longer = [one["justification"], StyledText(f"ended by {one['ended_by']}", "quiet")]
    ended = StyledText(one["state"].upper(), "bad")
    if one["ended_at"] is not None:
        ended = StyledText(one["ended_how"] or "ended", "good")
    ended_at = clock.short_time(one["ended_at"]) if one["ended_at"] else ""
    return (
        cell(clock.short_time(one["engaged_at"])),
        stack(one["reason"], by, *(no_longer if one["ended_by"] else ())),
        cell(clock.duration(one["engaged_at"], one["ended_at"])),
        stack(ended, StyledText(ended_at, "quiet")),
    )


def format_expiry(one: Switch, clock: Clock) -> Cell:
    if one["permanent"]:
        return cell("permanent")
    if one["expires_at"] is None:
        return cell("-")
    left = clock.time_left(one["expires_at"])
    style = "bad" if one["overdue"] or clock.is_over(one["expires_at"]) else ""
    at = f"{clock.short_time(one['expires_at'])}, then {one['on_expiry']}"
    return stack(StyledText(left, style), StyledText(at, "quiet"))


def format_effect(found: Mapping[str, Any] | None) -> Cell:
    """Return the number of reporting instances that apply a change, such as `3 of 4`."""
    if not found:
        return cell("-")
    if not found["instances"]:
        return cell(StyledText("unknown", "quiet"))
    everybody = found["applied"] >= found["instances"]
    text = f"{found['applied']:,} of {found['instances']:,}"
    return cell(StyledText(text, "good" if everybody else "warn"))


def format_summary(switches: Sequence[Switch]) -> Cell:
    """Return the counts by state, such as `2 engaged (1 OVERDUE), 1 ramping`."""
    engaged = sum(one["state"] == "engaged" for one in switches)
    ramping = sum(one["state"] == "ramping" for one in switches)
    overdue = sum(bool(one["overdue"]) for one in switches)
    late = cell(" (", StyledText(f"{overdue} OVERDUE", "bad"), ")") if overdue else ""
    return join(
        [
            cell(StyledText(f"{engaged} engaged", "bad"), late) if engaged else "",
            StyledText(f"{ramping} ramping", "warn") if ramping else "",
        ]
    )


def format_degradation(picture: Mapping[str, Any]) -> Cell:
    """Return the degradation level with its causes: `Degradation: 1, degraded: …`."""
    level = int(picture["level"])
    name = StyledText(f"{level}, {picture['name']}", LEVELS[level])
    causes = "; ".join(map(str, picture.get("causes", ())))
    return cell("Degradation: ", name, f": {causes}" if causes else "")


def switch_facts(one: Switch, clock: Clock) -> list[tuple[str, object]]:
    """Return pairs of name and value for all of a switch but its id and state."""
    stopped = one["state"] != "released"
    engaged, proven = one["engaged_at"], one["last_proven_at"]
    since = clock.ago(engaged)
    return [
        ("reason", one["reason"]),
        ("by", one["engaged_by"]),
        ("since", None if since == "-" else f"{since} ({clock.exact_time(engaged)})"),
        ("expires", _expiry_text(one, clock)),
        ("ramp", f"{one['ramp']}: switchgear ramp show {one['ramp']}" if one["ramp"] else None),
        ("effect", format_progress(one.get("effect"))),
        ("owner", one["owner"]),
        ("description", one["description"]),
        ("runbook", one["runbook_url"]),
        ("last drill passed", clock.ago(proven) if proven else "never" if not stopped else None),
    ]


def format_progress(found: Mapping[str, Any] | None) -> Cell:
    """Return a summary of the spread of a change.

    It names the version of the snapshot, the number of instances that apply it, and stragglers.
    """
    if not found:
        return cell()
    version = f"version {found['version']} is committed"
    if not found["instances"]:
        return cell(version, "; no instance is reporting, so its effect is unknown")
    everybody = found["applied"] >= found["instances"]
    of = f"{found['applied']:,} of {pluralize(found['instances'], 'instance')}"
    fast = f", 99 % of them within {found['p99_ms']} ms" if found["p99_ms"] is not None else ""
    silent = found.get("silent_total", 0)
    return stack(
        cell(version, ", applied by ", StyledText(of, "good" if everybody else "warn"), fast),
        cell(StyledText("not by ", "warn"), format_stragglers(found)) if not everybody else "",
        f"{pluralize(silent, 'instance')} stopped reporting before confirming it" if silent else "",
    )


def format_stragglers(found: Mapping[str, Any]) -> str:
    named = [str(one) for one in found["stragglers"][:MAX_NAMED]]
    more = found.get("stragglers_total", len(found["stragglers"])) - len(named)
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")


def blast_radius(found: Mapping[str, Any], clock: Clock) -> list[tuple[str, object]]:
    """Return the services and switches that a change would affect."""
    services = [
        f"{one['service']} ({pluralize(one['instances'], 'instance')},"
        f" {one['calls_per_second']:g}/s)"
        for one in found["services"]
    ]
    others = [f"{one['id']} ({one['state']})" for one in found["overlapping"]]
    last_seen = clock.ago(found["last_seen"]) if found["last_seen"] else "not in the last hour"
    return [
        ("affects", ", ".join(services) or "no service checked it in the last hour"),
        ("last checked", last_seen),
        ("overlaps", ", ".join(others)),
    ]


def _expiry_text(one: Switch, clock: Clock) -> Cell:
    if one["permanent"]:
        return cell("never (permanent)")
    if one["expires_at"] is None:
        return cell()
    then = f"{clock.time_left(one['expires_at'])} ({clock.exact_time(one['expires_at'])})"
    style = "bad" if one["overdue"] else ""
    late = cell(" ", StyledText(" OVERDUE ", "alarm")) if one["overdue"] else ""
    return cell(StyledText(then, style), f", then {one['on_expiry']}", late)
