"""Descriptions of SLO documents and their differences, for people. Pure."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from controlplane.core.audit.differences import AuditChange

ON = {"page": "a page", "ticket": "a ticket", "any": "any alert"}
FIELDS = (
    *("kind", "target", "window_days", "threshold_ms", "source", "rules", "min_events"),
    *("actions", "service", "owner", "description", "runbook_url"),
)
NAMES = {
    "window_days": "period",
    "threshold_ms": "threshold",
    "min_events": "least events",
    "runbook_url": "runbook",
}


def format_percent(share: Any) -> str:
    """Format a share with all its digits: `99.9 %`."""
    return f"{(Decimal(str(share)) * 100).normalize():f} %"


def describe_rule(one: Mapping[str, Any]) -> str:
    """Return a rule in words: `1h and 5m above 14: page`."""
    return f"{one['long']} and {one['short']} above {one['burn_rate']:g}: {one['severity']}"


def describe_action(one: Mapping[str, Any]) -> str:
    """Return an action in words: `On a page, stop experiment:x for 1h`."""
    does = "hold its ramps"
    if one["do"] == "trip":
        does = f"stop {one['switch']} for {one['expires_in']}"
    on_unknown = one.get("on_unknown") == "act"
    also = ", also when nothing is known" if on_unknown else ""
    return f"On {ON.get(one['on'], one['on'])}, {does}{also}"


def describe_source(one: Mapping[str, Any]) -> str:
    if one.get("type") != "prometheus":
        return "pushed to us"
    return f"Prometheus at {one['url']}\ngood: {one['good']}\ntotal: {one['total']}"


def describe_changes(
    before: Mapping[str, Any] | None, after: Mapping[str, Any]
) -> Sequence[AuditChange]:
    """Return the fields that differ, in words."""
    old = describe_document(before) if before else {}
    new = describe_document(after)
    return [
        AuditChange(NAMES.get(name, name), old.get(name, ""), new[name], True)
        for name in FIELDS
        if old.get(name, "") != new[name]
    ]


def describe_document(document: Mapping[str, Any]) -> dict[str, str]:
    """Return every field in words, by name."""
    found = {name: _plain(document.get(name)) for name in FIELDS}
    found["target"] = format_percent(document["target"])
    days = document["window_days"]
    found["window_days"] = "1 day" if days == 1 else f"{days} days"
    if found["threshold_ms"]:
        found["threshold_ms"] += " ms"
    found["source"] = describe_source(document["source"])
    found["rules"] = "\n".join(map(describe_rule, document["rules"]))
    found["actions"] = "\n".join(map(describe_action, document["actions"]))
    return found


def _plain(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
