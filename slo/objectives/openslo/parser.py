"""Conversion of OpenSLO documents to SLO documents. Pure."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from controlplane.core.errors import InvalidInput
from controlplane.core.json_values import is_finite
from slo.arithmetic.minutes import MINUTES_A_DAY
from slo.arithmetic.objective import PAGE, TICKET, json_number
from slo.objectives import documents
from slo.objectives.import_notes import as_mapping

from . import indicators, kept_metadata
from .document_index import (
    CONDITION,
    POLICY,
    SLI,
    DocumentIndex,
    OpenSloEntry,
    index_documents,
)

MAX_DOCUMENTS = 2000
PREFIX = "switchgear/"
"""Prefix of the annotations that hold fields that OpenSLO does not have."""
OCCURRENCES, TIMESLICES = "Occurrences", "Timeslices"
SLICE_WINDOW = "1m"
"""The only supported length of a time slice: counters are kept by the minute."""
UNASSIGNED = "unassigned"
"""Service name in OpenSLO documents, which require one, of an SLO without a service."""
UNIT_MINUTES = {
    "m": 1,
    "h": 60,
    "d": MINUTES_A_DAY,
    "w": 7 * MINUTES_A_DAY,
    "M": 30 * MINUTES_A_DAY,
    "Q": 90 * MINUTES_A_DAY,
    "Y": 365 * MINUTES_A_DAY,
}
_WINDOW = re.compile(r"([1-9][0-9]{0,3})([mhdwMQY])")
_SLUG = re.compile(r"[^a-z0-9-]+")
SHORT = "switchgear/short"
"""Annotation of an alert condition that holds the short window, which OpenSLO does not have."""
PAGES = frozenset({"page", "critical", "high", "sev1", "p1"})
ABOVE = ("gt", "gte")


def parse_documents(raw: Sequence[Any], *, server: str = "") -> documents.ParsedSlos:
    """Return the SLOs of OpenSLO documents.

    `server` is the Prometheus URL for documents that name none. Raise :class:`InvalidInput` naming
    document and field.
    """
    if len(raw) > MAX_DOCUMENTS:
        raise InvalidInput({"documents": [f"At most {MAX_DOCUMENTS:,} documents per import."]})
    index = index_documents(raw)
    slos: dict[str, documents.Document] = {}
    for entry in index.slos:
        for place, name, fields in _read_objectives(index, entry, server):
            if name in slos:
                index.wrong(place, f"The documents contain another SLO {name}.")
                continue
            try:
                slos[name] = documents.validate(name, fields)
            except InvalidInput as error:
                for field, message in error.errors.items():
                    index.errors.setdefault(f"{place}: {field}", []).extend(message)
    if index.errors:
        raise InvalidInput(index.errors)
    return documents.ParsedSlos(slos, tuple(index.remarks))


def _read_objectives(
    index: DocumentIndex, entry: OpenSloEntry, server: str
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield each objective of an OpenSLO document as an SLO: its path, name and fields."""
    spec, at = entry.spec, f"{entry.place}.spec"
    method = spec.get("budgetingMethod", OCCURRENCES)
    if method not in (OCCURRENCES, TIMESLICES):
        message = "Must be Occurrences or Timeslices. A mean of ratios is not supported."
        index.wrong(f"{at}.budgetingMethod", message)
        return
    objectives = spec.get("objectives")
    if not isinstance(objectives, list) or not objectives:
        index.wrong(f"{at}.objectives", "Must be a list with at least one objective.")
        return
    errors_before = len(index.errors)
    description = spec.get("description")
    shared = {
        "description": description if isinstance(description, str) else "",
        "service": _read_service(index, entry),
        "window_days": _read_days(index, spec.get("timeWindow"), f"{at}.timeWindow"),
        "kind": "ratio",
        **_own_annotations(index, entry),
    }
    rules = _read_rules(index, spec, at)
    for number, objective in enumerate(objectives):
        place = f"{at}.objectives.{number}"
        if not isinstance(objective, Mapping):
            index.wrong(place, "Must be an object with a target.")
            continue
        fields = {**shared, "target": _read_target(index, objective, place)}
        fields["slice_target"] = _read_slice_target(index, objective, method, place)
        name = _make_name(entry, objective, number)
        if indicator := _find_indicator(index, entry, objective, place):
            fields |= indicators.read_indicator(index, indicator, objective, place, server)
            fields["metadata"] = kept_metadata.collect(index, entry, indicator, objective, name)
        if rules is not None:
            fields["rules"] = rules
        else:
            index.remark(entry.place, "It has no alert policies; the default rules were used.")
        if len(index.errors) == errors_before:
            yield place, name, fields


def _make_name(entry: OpenSloEntry, objective: Mapping[str, Any], number: int) -> str:
    """Return the name of an objective's SLO: the document's, with a suffix after the first."""
    if not number:
        return entry.name
    display_name = objective.get("displayName")
    text = display_name.lower() if isinstance(display_name, str) else ""
    return f"{entry.name}-{_SLUG.sub('-', text).strip('-') or number + 1}"


def _read_slice_target(
    index: DocumentIndex, objective: Mapping[str, Any], method: str, place: str
) -> Any:
    """Return the share that makes a time slice good, not validated yet; None for Occurrences."""
    found = [name for name in ("timeSliceTarget", "timeSliceWindow") if name in objective]
    if method == OCCURRENCES:
        if found:
            index.remark(place, f"{' and '.join(found)} applies to Timeslices only; ignored.")
        return None
    window = objective.get("timeSliceWindow")
    if str(window) != SLICE_WINDOW:
        index.wrong(f"{place}.timeSliceWindow", f"Must be {SLICE_WINDOW}: slices are minutes.")
    target = objective.get("timeSliceTarget")
    if target is None:
        index.wrong(f"{place}.timeSliceTarget", "Enter the share that makes a minute good: 0.99.")
    return target


def _find_indicator(
    index: DocumentIndex, entry: OpenSloEntry, objective: Mapping[str, Any], place: str
) -> OpenSloEntry | None:
    """Return the indicator of an objective, else that of its SLO; without one, add an error."""
    within, at = entry.spec, f"{entry.place}.spec"
    if "indicator" in objective or "indicatorRef" in objective:
        within, at = objective, place
    if "indicatorRef" in within:
        return index.resolve(SLI, within, "indicatorRef", at)
    if "indicator" in within:
        return index.resolve(SLI, within["indicator"], "indicatorRef", f"{at}.indicator")
    index.wrong(f"{at}.indicator", "Add an indicator, or an indicatorRef.")
    return None


def _own_annotations(index: DocumentIndex, entry: OpenSloEntry) -> dict[str, Any]:
    """Return the SLO fields that OpenSLO lacks, from annotations that begin with `PREFIX`."""
    found: dict[str, Any] = {}
    for field in ("kind", "owner", "runbook_url"):
        if message := entry.note(PREFIX + field):
            found[field] = message
    for field in ("threshold_ms", "min_events", "actions"):
        if not (message := entry.note(PREFIX + field)):
            continue
        try:
            found[field] = json.loads(message)
        except (ValueError, RecursionError):
            index.wrong(f"{entry.place}.metadata.annotations.{PREFIX}{field}", "Must be JSON.")
    return found


def _read_service(index: DocumentIndex, entry: OpenSloEntry) -> str:
    raw = entry.spec.get("service")
    if raw is None or raw == UNASSIGNED:
        return ""
    if isinstance(raw, str) and documents.is_valid_service(raw):
        return raw
    slug = _SLUG.sub("-", raw.lower()).strip("-")[:60] if isinstance(raw, str) else ""
    if not slug:
        index.wrong(f"{entry.place}.spec.service", "Must be the name of a service.")
    else:
        index.remark(entry.place, f"Its service {raw!r} was imported as {slug}.")
    return slug


def _read_days(index: DocumentIndex, raw: Any, place: str) -> int:
    windows = raw if isinstance(raw, list) else [raw] if raw is not None else []
    if not windows:
        index.remark(place, "It has no time window; 30 days were used.")
        return 30
    window = as_mapping(windows[0])
    written = _WINDOW.fullmatch(str(window.get("duration")))
    if len(windows) > 1 or written is None:
        index.wrong(place, "Must be one window, with a duration such as 28d or 4w.")
        return 30
    number, unit = int(written[1]), written[2]
    days, rest = divmod(number * UNIT_MINUTES[unit], MINUTES_A_DAY)
    if rest:
        hint = " m are minutes; a month is 1M." if unit == "m" else ""
        index.wrong(f"{place}.duration", f"Must be whole days.{hint}")
        return 30
    if unit in "MQY":
        index.remark(place, f"{window['duration']} was converted to {days} days.")
    if window.get("isRolling") is False or "calendar" in window:
        index.remark(
            place, "The calendar window was replaced by a rolling window of the same length."
        )
    return days


def _read_target(index: DocumentIndex, objective: Mapping[str, Any], place: str) -> Any:
    """Return the target of an objective as a share, not validated yet."""
    if "compositeWeight" in objective:
        index.remark(place, "compositeWeight was ignored: each objective is an SLO of its own.")
    percent = objective.get("targetPercent")
    if "target" in objective or percent is None:
        return objective.get("target")
    if isinstance(percent, bool) or not isinstance(percent, int | float) or not is_finite(percent):
        index.wrong(f"{place}.targetPercent", "Must be a number, without quotes.")
        return None
    return json_number(Decimal(str(percent)) / 100)


def _read_rules(
    index: DocumentIndex, spec: Mapping[str, Any], at: str
) -> list[dict[str, Any]] | None:
    """Convert an SLO's alert policies to distinct burn-rate rules; None if it has no policies."""
    raw = spec.get("alertPolicies")
    if raw is None:
        return None
    at = f"{at}.alertPolicies"
    if not isinstance(raw, list):
        index.wrong(at, "Must be a list.")
        return []
    found: list[dict[str, Any]] = []
    for number, one in enumerate(raw):
        place = f"{at}.{number}"
        # Some documents have a bare name where the format has an object.
        reference = {"alertPolicyRef": one} if isinstance(one, str) else one
        policy = index.resolve(POLICY, reference, "alertPolicyRef", place)
        for condition in _read_conditions(index, policy) if policy else ():
            rule = _read_rule(index, condition)
            if rule and rule not in found:
                found.append(rule)
    return found


def _read_conditions(index: DocumentIndex, policy: OpenSloEntry) -> Iterator[OpenSloEntry]:
    spec, at = policy.spec, f"{policy.place}.spec"
    conditions = spec.get("conditions")
    if not isinstance(conditions, list) or not conditions:
        index.wrong(f"{at}.conditions", "Must be a list with at least one condition.")
        return
    if spec.get("alertWhenNoData"):
        message = "alertWhenNoData was ignored: rules don't fire without data."
        index.remark(policy.place, message)
    if spec.get("notificationTargets"):
        message = "notificationTargets were ignored: set recipients under Notifications."
        index.remark(policy.place, message)
    for number, one in enumerate(conditions):
        found = index.resolve(CONDITION, one, "conditionRef", f"{at}.conditions.{number}")
        if found is not None:
            yield found


def _read_rule(index: DocumentIndex, condition: OpenSloEntry) -> dict[str, Any] | None:
    """Convert an alert condition to a burn-rate rule, which is not validated yet."""
    spec, at = as_mapping(condition.spec.get("condition")), f"{condition.place}.spec.condition"
    if spec.get("kind") != "burnrate":
        index.wrong(f"{at}.kind", "Must be burnrate.")
        return None
    if spec.get("op", "gt") not in ABOVE:
        index.wrong(f"{at}.op", "Must be gt: a rule fires above its burn rate.")
        return None
    if spec.get("op") == "gte":
        index.remark(
            condition.place, "gte was replaced by gt: a rule doesn't fire exactly at its burn rate."
        )
    short = condition.note(SHORT)
    if spec.get("alertAfter") and not short:
        message = (
            "alertAfter was ignored: an alert opens as soon as the short window also exceeds the"
            " burn rate."
        )
        index.remark(condition.place, message)
    severity = str(condition.spec.get("severity") or TICKET).lower()
    return {
        "long": spec.get("lookbackWindow"),
        "short": short or None,
        "burn_rate": spec.get("threshold"),
        "severity": PAGE if severity in PAGES else TICKET,
    }
