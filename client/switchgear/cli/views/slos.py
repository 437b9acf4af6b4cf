"""Table rows, and pairs of name and value, that show SLOs and alerts."""

from collections.abc import Mapping
from typing import Any

from switchgear.cli.formatters import (
    Cell,
    Clock,
    StyledText,
    cell,
    format_number,
    format_ratio,
    stack,
)

COLUMNS = ("STATE", "*SLO", ">TARGET", ">BUDGET LEFT", "SPENT IN", "SINCE")
WINDOW_COLUMNS = ("WINDOW", ">BURN RATE", ">COVERED")
RULE_COLUMNS = ("RULE", "SEVERITY", "STATE")
ALERT_COLUMNS = (">ALERT", "SEVERITY", "STATE", "*WHAT", "OPENED", "LAST FIRED")
ORDER = ("firing", "unknown", "ok")

Slo = Mapping[str, Any]

_STATES = {
    "firing": StyledText("✖ FIRING", "bad"),
    "ok": StyledText("✔ ok", "good"),
    "unknown": StyledText("? unknown", "warn"),
}
_ALERTS = {
    "open": StyledText("✖ OPEN", "bad"),
    "acknowledged": StyledText("⚑ acknowledged", "warn"),
    "resolved": StyledText("✔ resolved", "good"),
}
_SEVERITIES = {"critical": "bad", "page": "bad", "warning": "warn", "ticket": "warn"}


def format_state(name: str) -> StyledText:
    return _STATES.get(name, StyledText(name))


def slo_row(one: Slo, clock: Clock) -> tuple[object, ...]:
    beside = f"{one['kind']} of {one['service']}" if one["service"] else one["kind"]
    error = one["source_error"]
    trouble = StyledText(f"source can't be read: {error}" if error else "", "bad")
    return (
        format_state(one["state"]),
        stack(StyledText(one["name"], "name"), StyledText(beside, "quiet"), trouble),
        stack(format_target(one), StyledText(f"{one['window_days']} d", "quiet")),
        format_budget(one["remaining_ratio"]),
        clock.time_left(one["exhausts_at"]) if one["exhausts_at"] else "-",
        clock.ago(one["since"]),
    )


def format_target(one: Slo) -> str:
    return f"{one['target'] * 100:.6g} %"


def format_budget(remaining: float | None) -> StyledText:
    if remaining is None:
        return StyledText("? unknown", "quiet")
    style = "bad" if remaining <= 0 else "warn" if remaining < 0.25 else "good"
    return StyledText(format_ratio(remaining), style)


def slo_facts(one: Slo, status: Slo, clock: Clock) -> list[tuple[str, object]]:
    limit = f", good within {one['threshold_ms']:g} ms" if one["threshold_ms"] else ""
    gone = status["budget"]["exhausts_at"]
    return [
        ("description", one["description"]),
        ("target", f"{format_target(one)} over {one['window_days']} days, {one['kind']}{limit}"),
        ("service", one["service"]),
        ("budget left", format_budget(status["budget"]["remaining_ratio"])),
        ("budget spent", f"{clock.time_left(gone)} ({clock.exact_time(gone)})" if gone else None),
        ("since", clock.exact_time(one["since"]) if one["since"] else None),
        ("data until", clock.exact_time(one["counted_to"]) if one["counted_to"] else "never"),
        ("source error", StyledText(one["source_error"] or "", "bad")),
        ("owner", one["owner"]),
        ("runbook", one["runbook_url"]),
    ]


def window_rows(status: Mapping[str, Any]) -> list[tuple[object, ...]]:
    return [
        (name, format_number(rate) if rate is not None else StyledText("? unknown", "quiet"),
         format_ratio(status["coverage"].get(name), 0))
        for name, rate in status["burn_rates"].items()
    ]  # fmt: skip


def rule_rows(status: Mapping[str, Any]) -> list[tuple[object, ...]]:
    return [
        (f"{one['long']}/{one['short']} > {one['burn_rate']:g}", format_severity(one["severity"]),
         format_state(one["state"]))
        for one in status["rules"]
    ]  # fmt: skip


def format_severity(name: str) -> StyledText:
    return StyledText(name, _SEVERITIES.get(name, ""))


def alert_row(one: Mapping[str, Any], clock: Clock) -> tuple[object, ...]:
    return (
        one["id"],
        format_severity(one["severity"]),
        _ALERTS.get(one["state"], StyledText(one["state"])),
        stack(StyledText(one["subject"], "name"), one["said"], format_acknowledgement(one)),
        stack(clock.ago(one["opened_at"]), StyledText(clock.short_time(one["opened_at"]), "quiet")),
        clock.ago(one["firing_at"]),
    )


def format_acknowledgement(one: Mapping[str, Any]) -> Cell:
    """Return the person who acknowledged an alert, with the comment; empty if nobody did."""
    if not one["acknowledged_by"]:
        return cell()
    because = f": {one['acknowledged_because']}" if one["acknowledged_because"] else ""
    return cell(StyledText(f"acknowledged by {one['acknowledged_by']}{because}", "quiet"))
