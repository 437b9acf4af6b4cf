"""SLOs, burn rates, budgets and alerts."""

from collections.abc import Mapping, Sequence
from typing import Any

from switchgear.cli.words import Cell, Clock, Part, cell, lines, number, ratio

COLUMNS = ("STATE", "*SLO", ">TARGET", ">BUDGET LEFT", "GONE", "SINCE")
WINDOW_COLUMNS = ("WINDOW", ">BURN RATE", ">COVERED")
RULE_COLUMNS = ("RULE", "SEVERITY", "STATE")
ALERT_COLUMNS = (">ALERT", "SEVERITY", "STATE", "*WHAT", "OPENED", "LAST FIRED")
ORDER = ("firing", "unknown", "ok")

Slo = Mapping[str, Any]

_STATES = {
    "firing": Part("✖ FIRING", "bad"),
    "ok": Part("✔ ok", "good"),
    "unknown": Part("? unknown", "warn"),
}
_ALERTS = {
    "open": Part("✖ OPEN", "bad"),
    "acknowledged": Part("⚑ acknowledged", "warn"),
    "resolved": Part("✔ resolved", "good"),
}
_SEVERITIES = {"critical": "bad", "page": "bad", "warning": "warn", "ticket": "warn"}


def state(name: str) -> Part:
    return _STATES.get(name, Part(name))


def ordered(slos: Sequence[Slo]) -> list[Slo]:
    """The worst first."""
    ranks = {name: rank for rank, name in enumerate(ORDER)}
    return sorted(slos, key=lambda one: (ranks.get(one["state"], 9), one["name"]))


def row(one: Slo, clock: Clock) -> tuple[object, ...]:
    beside = f"{one['kind']} of {one['service']}" if one["service"] else one["kind"]
    trouble = Part(f"its source: {one['source_error']}", "bad") if one["source_error"] else None
    return (
        state(one["state"]),
        lines(Part(one["name"], "name"), Part(beside, "quiet"), trouble),
        lines(target(one), Part(f"{one['window_days']} d", "quiet")),
        budget(one["remaining_ratio"]),
        clock.left(one["exhausts_at"]) if one["exhausts_at"] else "-",
        clock.ago(one["since"]),
    )


def target(one: Slo) -> str:
    return f"{one['target'] * 100:.6g} %"


def budget(remaining: float | None) -> Part:
    if remaining is None:
        return Part("? unknown", "quiet")
    style = "bad" if remaining <= 0 else "warn" if remaining < 0.25 else "good"
    return Part(ratio(remaining), style)


def facts(one: Slo, status: Slo, clock: Clock) -> list[tuple[str, object]]:
    limit = f", good within {one['threshold_ms']:g} ms" if one["threshold_ms"] else ""
    gone = status["budget"]["exhausts_at"]
    return [
        ("what", one["description"]),
        ("target", f"{target(one)} over {one['window_days']} days, {one['kind']}{limit}"),
        ("service", one["service"]),
        ("budget left", budget(status["budget"]["remaining_ratio"])),
        ("gone", f"{clock.left(gone)} ({clock.exactly(gone)})" if gone else None),
        ("since", clock.exactly(one["since"]) if one["since"] else None),
        ("counted to", clock.exactly(one["counted_to"]) if one["counted_to"] else "never"),
        ("its source", Part(one["source_error"] or "", "bad")),
        ("owner", one["owner"]),
        ("runbook", one["runbook_url"]),
    ]


def windows(status: Mapping[str, Any]) -> list[tuple[object, ...]]:
    return [
        (name, number(rate) if rate is not None else Part("? unknown", "quiet"),
         ratio(status["coverage"].get(name), 0))
        for name, rate in status["burn_rates"].items()
    ]  # fmt: skip


def rules(status: Mapping[str, Any]) -> list[tuple[object, ...]]:
    return [
        (f"{one['long']}/{one['short']} > {one['burn_rate']:g}", severity(one["severity"]),
         state(one["state"]))
        for one in status["rules"]
    ]  # fmt: skip


def severity(name: str) -> Part:
    return Part(name, _SEVERITIES.get(name, ""))


def alert_row(one: Mapping[str, Any], clock: Clock) -> tuple[object, ...]:
    return (
        one["id"],
        severity(one["severity"]),
        _ALERTS.get(one["state"], Part(one["state"])),
        lines(Part(one["subject"], "name"), one["said"], known(one)),
        lines(clock.ago(one["opened_at"]), Part(clock.at(one["opened_at"]), "quiet")),
        clock.ago(one["firing_at"]),
    )


def known(one: Mapping[str, Any]) -> Cell:
    """Who said that they know, and what."""
    if not one["acknowledged_by"]:
        return cell()
    because = f": {one['acknowledged_because']}" if one["acknowledged_because"] else ""
    return cell(Part(f"known by {one['acknowledged_by']}{because}", "quiet"))
