"""The document of an SLO (its fields as JSON): validation, conversion and display."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from controlplane.core import json_values
from controlplane.core.audit.differences import AuditChange
from controlplane.core.errors import InvalidInput
from controlplane.core.json_values import Errors, add_error
from slo.arithmetic.objective import Objective, json_number
from slo.evaluation import objective_loader
from slo.models import Slo
from slo.models.objective import PROMETHEUS

from . import metadata, names
from .rules import read_rules
from .sources_and_actions import read_actions, read_source

Document = dict[str, Any]

RESERVED_NAMES = frozenset({"new", "thresholds"})
"""Names that no SLO can have, because other pages have these URLs."""
MAX_DAYS = 366
MAX_EVENTS = 10**15
DECIMALS = 8
FIELDS = (
    "service", "kind", "target", "window_days", "threshold_ms", "source", "rules", "min_events",
    "slice_target", "actions", "description", "owner", "runbook_url", "metadata",
)  # fmt: skip
KINDS = tuple(Slo.Kind.values)

_SERVICE = re.compile(r"[a-z0-9-]{1,60}", re.ASCII)
ACTION_TRIGGERS = {"page": "a page", "ticket": "a ticket", "any": "any alert"}
DISPLAY_ORDER = (
    *("kind", "target", "window_days", "threshold_ms", "source", "rules", "min_events"),
    *("slice_target", "actions", "service", "owner", "description", "runbook_url", "metadata"),
)
FIELD_LABELS = {
    "window_days": "period",
    "threshold_ms": "threshold",
    "min_events": "minimum events",
    "runbook_url": "runbook",
    "slice_target": "good share of a minute",
    "metadata": "imported names and labels",
}


@dataclass(frozen=True)
class ParsedSlos:
    """SLO documents by name, and remarks for people on what was left out or changed."""

    slos: Mapping[str, Document]
    remarks: tuple[str, ...] = ()


def validate(name: str, fields: Mapping[str, Any]) -> Document:
    """Return `fields` as a complete SLO document, without the name; omitted ones get defaults.

    Raise :class:`InvalidInput` naming each invalid field (`rules.0.burn_rate`).
    """
    errors: Errors = {}
    names.check_name(name, RESERVED_NAMES, errors)
    json_values.refuse_unknown("", fields, FIELDS, errors)
    raw = {field: value for field, value in fields.items() if value is not None}
    kind = json_values.read_choice("kind", raw.get("kind", "availability"), KINDS, errors)
    service = json_values.read_text("service", raw.get("service"), 60, errors)
    if service and not is_valid_service(service):
        add_error(errors, "service", "Must be 1 to 60 of the letters, digits and signs a-z 0-9 -")
    target = _read_target(raw.get("target"), errors)
    days = json_values.read_integer("window_days", raw.get("window_days", 30), 1, MAX_DAYS, errors)
    document = {
        "service": service,
        "kind": kind,
        "target": json_number(target),
        "window_days": days,
        "threshold_ms": _read_threshold(raw.get("threshold_ms"), kind, errors),
        "source": read_source(raw.get("source"), errors),
        "rules": read_rules(raw.get("rules"), target, days, errors),
        "min_events": json_values.read_integer(
            "min_events", raw.get("min_events", 0), 0, MAX_EVENTS, errors
        ),
        "slice_target": _read_slice_target(raw.get("slice_target"), errors),
        "actions": read_actions(raw.get("actions"), service, errors),
        "description": json_values.read_text("description", raw.get("description"), 4000, errors),
        "owner": json_values.read_text("owner", raw.get("owner"), 200, errors),
        "runbook_url": json_values.read_url("runbook_url", raw.get("runbook_url"), 500, errors),
        "metadata": metadata.read_metadata(raw.get("metadata"), errors),
    }
    if errors:
        raise InvalidInput(errors)
    return document


def to_document(slo: Slo) -> Document:
    """Return the document of a saved SLO, without the name."""
    found = {field: getattr(slo, field) for field in FIELDS}
    slice_target = None if slo.slice_target is None else json_number(slo.slice_target)
    numbers = {"target": float(slo.target), "threshold_ms": threshold_as_number(slo.threshold_ms)}
    return found | numbers | {"slice_target": slice_target, "metadata": slo.metadata or {}}


def threshold_as_number(threshold_ms: float | None) -> int | float | None:
    """Return a latency threshold as a JSON number: an integer if it is whole, else a float."""
    return None if threshold_ms is None else json_number(Decimal(str(threshold_ms)))


def apply_document(slo: Slo, document: Mapping[str, Any]) -> None:
    """Set the fields of an SLO from a validated document, without saving."""
    for field in FIELDS:
        setattr(slo, field, document[field])
    slo.target = Decimal(str(document["target"]))
    slo.slice_target = _as_decimal(document["slice_target"])


def to_objective(document: Mapping[str, Any]) -> Objective:
    """Return the objective of a document, with its numbers as exact decimals."""
    return Objective(
        target=Decimal(str(document["target"])),
        window_days=document["window_days"],
        rules=objective_loader.parse_rules(document["rules"]),
        min_events=document["min_events"],
        slice_target=_as_decimal(document["slice_target"]),
    )


def _as_decimal(number: float | None) -> Decimal | None:
    return None if number is None else Decimal(str(number))


def is_valid_service(text: str) -> bool:
    return _SERVICE.fullmatch(text) is not None


def _read_target(raw: Any, errors: Errors) -> Decimal:
    """Return the target; if it is invalid, add an error and return 0.999 for further checks."""
    fallback = Decimal("0.999")
    if raw is None:
        add_error(errors, "target", "Enter the share of events that must be good, such as 0.999.")
        return fallback
    errors_before = len(errors)
    value = json_values.read_number("target", raw, None, None, errors)
    if len(errors) > errors_before:
        return fallback
    target = Decimal(str(value))
    if not 0 < target < 1:
        meant = target / 100
        hint = f" 99.9 % is 0.999: did you mean {meant:f}?" if 1 < target < 100 else ""
        add_error(errors, "target", f"Must be a share above 0 and below 1.{hint}")
        return fallback
    if int(target.as_tuple().exponent) < -DECIMALS:
        add_error(errors, "target", f"At most {DECIMALS} decimals.")
        return fallback
    return target


def _read_slice_target(raw: Any, errors: Errors) -> int | float | None:
    """Return the slice target as a JSON number, None if events are counted."""
    if raw is None:
        return None
    errors_before = len(errors)
    value = json_values.read_number("slice_target", raw, None, None, errors)
    if len(errors) > errors_before:
        return None
    target = Decimal(str(value))
    if not 0 < target < 1:
        add_error(errors, "slice_target", "Must be a share above 0 and below 1, such as 0.99.")
    elif int(target.as_tuple().exponent) < -DECIMALS:
        add_error(errors, "slice_target", f"At most {DECIMALS} decimals.")
    return json_number(target)


def _read_threshold(raw: Any, kind: str, errors: Errors) -> float | None:
    if kind == Slo.Kind.LATENCY:
        if raw is None:
            add_error(
                errors, "threshold_ms", "Enter the milliseconds within which an event is good."
            )
            return None
        found = json_values.read_number("threshold_ms", raw, 0, 1e9, errors)
        if found == 0 and "threshold_ms" not in errors:
            add_error(errors, "threshold_ms", "Must be above 0.")
        return found
    if raw is not None and kind:
        add_error(errors, "threshold_ms", "Only an SLO of kind latency has a threshold.")
    return None


def format_percent(share: Any) -> str:
    """Format a share with all its digits: `99.9 %`."""
    return f"{(Decimal(str(share)) * 100).normalize():f} %"


def describe_rule(one: Mapping[str, Any]) -> str:
    """Return a rule in words: `1h and 5m above 14: page`."""
    return f"{one['long']} and {one['short']} above {one['burn_rate']:g}: {one['severity']}"


def describe_action(one: Mapping[str, Any]) -> str:
    """Return an action in words: `On a page, stop experiment:x for 1h`."""
    is_trip = one["do"] == "trip"
    does = f"stop {one['switch']} for {one['expires_in']}" if is_trip else "hold its ramps"
    also = ", also when its state is unknown" if one.get("on_unknown") == "act" else ""
    return f"On {ACTION_TRIGGERS.get(one['on'], one['on'])}, {does}{also}"


def describe_changes(
    before: Mapping[str, Any] | None, after: Mapping[str, Any]
) -> Sequence[AuditChange]:
    """Return the fields that differ between two documents, in words."""
    old = describe_document(before) if before else {}
    new = describe_document(after)
    return [
        AuditChange(FIELD_LABELS.get(name, name), old.get(name, ""), new[name], True)
        for name in DISPLAY_ORDER
        if old.get(name, "") != new[name]
    ]


def describe_document(document: Mapping[str, Any]) -> dict[str, str]:
    found = {name: _format_value(document.get(name)) for name in DISPLAY_ORDER}
    found["target"] = format_percent(document["target"])
    days = document["window_days"]
    found["window_days"] = "1 day" if days == 1 else f"{days} days"
    if found["threshold_ms"]:
        found["threshold_ms"] += " ms"
    if document.get("slice_target") is not None:
        found["slice_target"] = format_percent(document["slice_target"])
    found["metadata"] = metadata.describe_metadata(document.get("metadata") or {})
    source = document["source"]
    found["source"] = "pushed to us"
    if source.get("type") == PROMETHEUS:
        queries = f"good: {source['good']}\ntotal: {source['total']}"
        found["source"] = f"Prometheus at {source['url']}\n{queries}"
    found["rules"] = "\n".join(map(describe_rule, document["rules"]))
    found["actions"] = "\n".join(map(describe_action, document["actions"]))
    return found


def _format_value(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
