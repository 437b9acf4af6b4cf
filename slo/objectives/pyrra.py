"""Import of Pyrra's ServiceLevelObjective resources. Pure.

https://github.com/pyrra-dev/pyrra. Pyrra scales its burn-rate rules from a period of 28 days.
"""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from controlplane.core.durations import format_canonical
from slo.arithmetic.minutes import end_of
from slo.arithmetic.objective import PAGE, TICKET, json_number
from slo.models.objective import PROMETHEUS, PUSH

from . import prometheus_queries
from .documents import MAX_DAYS
from .import_notes import ImportNotes, as_mapping, read_labels
from .rules import can_fire

API_VERSION_PREFIX = "pyrra.dev/"
KIND = "ServiceLevelObjective"
UNSUPPORTED = {
    "latencyNative": "A native histogram has no counter of good events. Use latency with buckets.",
    "bool_gauge": "A gauge counts no events. Use ratio or latency.",
}
DROPPED_ALERTING = {
    "name": "alerts are named after their SLO.",
    "absentName": "SLOs without data are shown as unknown.",
}
DROPPED = {"partial_response_strategy": "it is an option of Thanos."}
FIELDS = {
    "spec": ("target", "window", "description", "indicator", "alerting", *DROPPED),
    "indicator": ("ratio", "latency", *UNSUPPORTED),
    "ratio": ("errors", "total", "grouping"),
    "latency": ("success", "total", "grouping"),
    "alerting": ("disabled", "burnrates", "absent", *DROPPED_ALERTING),
}
"""The fields of each part of a resource."""
WINDOWS = ((60, 5, 14, PAGE), (360, 30, 7, PAGE), (1440, 120, 2, TICKET), (5760, 360, 1, TICKET))
"""Pyrra's rules for 28 days: long and short window in minutes, burn rate, severity."""
REFERENCE_DAYS = 28
UNIT_DAYS = {"d": 1, "w": 7, "y": 365}
UNIT_MS = {"_seconds_bucket": Decimal(1000), "_milliseconds_bucket": Decimal(1)}
_DURATION_PART = re.compile(r"([0-9]{1,5})([dwy])")
_EDGE = re.compile(r'\ble\s*=\s*["\']([0-9.]{1,20})["\']')


def is_pyrra(document: Mapping[str, Any]) -> bool:
    return str(document.get("apiVersion")).startswith(API_VERSION_PREFIX)


def read_document(
    notes: ImportNotes, document: Mapping[str, Any], place: str, server: str
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the SLO of a Pyrra resource: its path, name and fields, not validated.

    `server` is the URL of the Prometheus server, which the resource does not name.
    """
    metadata, spec = as_mapping(document.get("metadata")), as_mapping(document.get("spec"))
    name = metadata.get("name")
    if document.get("kind") != KIND:
        notes.wrong(f"{place}.kind", f"Must be {KIND}.")
        return
    if not isinstance(name, str) or not name:
        notes.wrong(f"{place}.metadata.name", "Enter a name.")
        return
    at, errors_before = f"{place}.spec", len(notes.errors)
    target = notes.read_percent(spec.get("target"), f"{at}.target")
    days = _read_days(notes, spec.get("window"), f"{at}.window")
    fields = {
        "target": target,
        "window_days": days,
        "description": spec.get("description") or "",
        "rules": _read_rules(notes, as_mapping(spec.get("alerting")), target, days, at),
        "metadata": {
            "labels": read_labels(metadata.get("labels")),
            "annotations": read_labels(metadata.get("annotations")),
        },
        **_read_indicator(notes, as_mapping(spec.get("indicator")), f"{at}.indicator", server),
    }
    notes.drop(f"{place}.metadata", metadata, {"namespace": "SLOs have none."})
    notes.drop(at, spec, DROPPED)
    notes.drop_unknown(at, spec, FIELDS["spec"])
    if len(notes.errors) == errors_before:
        yield place, name, fields


def _read_days(notes: ImportNotes, raw: Any, place: str) -> int:
    """Return a Prometheus duration (`4w`) in days; 28 after an error."""
    text = str(raw)
    parts = _DURATION_PART.findall(text)
    days = sum(int(number) * UNIT_DAYS[unit] for number, unit in parts)
    if not 0 < days <= MAX_DAYS or "".join(map("".join, parts)) != text:
        notes.wrong(place, f"Must be 1 to {MAX_DAYS} whole days, such as 4w or 30d.")
        return REFERENCE_DAYS
    return days


def _read_indicator(
    notes: ImportNotes, indicator: Mapping[str, Any], place: str, server: str
) -> dict[str, Any]:
    notes.drop_unknown(place, indicator, FIELDS["indicator"])
    for name, message in UNSUPPORTED.items():
        if indicator.get(name):
            notes.wrong(f"{place}.{name}", message)
            return {}
    kind, counted = ("latency", "success") if indicator.get("latency") else ("ratio", "errors")
    metrics, at = as_mapping(indicator.get(kind)), f"{place}.{kind}"
    notes.drop_unknown(at, metrics, FIELDS[kind])
    selectors = {}
    for name in (counted, "total"):
        metric = as_mapping(metrics.get(name)).get("metric")
        selector = prometheus_queries.parse_selector(metric) if isinstance(metric, str) else None
        if selector is None:
            message = 'Must be the selector of a counter, such as requests_total{job="shop"}.'
            notes.wrong(f"{at}.{name}.metric", message)
            return {}
        selectors[name] = selector
    if metrics.get("grouping"):
        notes.remark(f"{at}.grouping", "Ignored: the SLO counts all groups together.")
    found = _read_threshold(selectors["success"]) if kind == "latency" else {"kind": "ratio"}
    if not server:
        notes.remark(place, "No Prometheus URL is given in the request; push its counters.")
        return {**found, "source": {"type": PUSH}}
    total, one = f"sum({selectors['total']})", f"sum({selectors[counted]})"
    good = one if kind == "latency" else prometheus_queries.subtract_errors(total, one)
    source = {"type": PROMETHEUS, "url": server, "good": good, "total": total}
    return {**found, "source": source}


def _read_threshold(selector: str) -> dict[str, Any]:
    """Return kind and threshold of a bucket whose unit is known; else the kind ratio."""
    edge = _EDGE.search(selector)
    metric = selector.partition("{")[0].strip()
    unit = next((size for end, size in UNIT_MS.items() if metric.endswith(end)), None)
    try:
        threshold = Decimal(edge[1]) * unit if edge and unit else Decimal(0)
    except InvalidOperation:
        threshold = Decimal(0)
    if threshold <= 0:
        return {"kind": "ratio"}
    return {"kind": "latency", "threshold_ms": json_number(threshold)}


def _read_rules(
    notes: ImportNotes, alerting: Mapping[str, Any], target: int | float, days: int, place: str
) -> list[dict[str, Any]]:
    """Return Pyrra's rules scaled to the period, without those that can never fire."""
    notes.drop(f"{place}.alerting", alerting, DROPPED_ALERTING)
    notes.drop_unknown(f"{place}.alerting", alerting, FIELDS["alerting"])
    if alerting.get("absent") is not False and alerting:
        notes.remark(f"{place}.alerting.absent", "Ignored: an SLO without data is unknown.")
    if alerting.get("disabled") or alerting.get("burnrates") is False:
        return []
    found = []
    for long, short, burn_rate, severity in WINDOWS:
        if not can_fire(Decimal(burn_rate), Decimal(str(target))):
            notes.remark(place, f"The rule of burn rate {burn_rate} was left out: it can't fire.")
            continue
        found.append(
            {
                "long": _scale(long, days),
                "short": _scale(short, days),
                "burn_rate": burn_rate,
                "severity": severity,
            }
        )
    return found


def _scale(minutes: int, days: int) -> str:
    scaled = max(1, round(minutes * days / REFERENCE_DAYS))
    return format_canonical(end_of(scaled) - end_of(0))
