"""SLOs from OpenSLO documents. Pure."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from controlplane.core.errors import InvalidInput
from controlplane.core.json_values import is_finite
from slo.arithmetic.objective import json_number
from slo.objectives import documents

from . import alert_policies, indicators
from .document_index import SLI, DocumentIndex, OpenSloEntry, as_mapping, index_documents

MAX_DOCUMENTS = 2000
PREFIX = "switchgear/"
"""Prefix of annotations for fields that OpenSLO does not have; exported and imported."""
OCCURRENCES = "Occurrences"
UNASSIGNED = "unassigned"
"""Stands for no service, as OpenSLO requires one."""
DAYS = {"d": 1, "w": 7, "M": 30, "Q": 90, "Y": 365}
_WINDOW = re.compile(r"([1-9][0-9]{0,3})([mhdwMQY])")
_SLUG = re.compile(r"[^a-z0-9-]+")


@dataclass(frozen=True)
class ParsedSlos:
    """Documents by name, and remarks on what was left out or changed."""

    slos: Mapping[str, documents.Document]
    remarks: tuple[str, ...]


def parse_documents(given: Sequence[Any], *, server: str = "") -> ParsedSlos:
    """Return the SLOs of OpenSLO documents.

    `server` is the Prometheus address for those that name none. Raise :class:`InvalidInput`,
    which names document and field.
    """
    if len(given) > MAX_DOCUMENTS:
        raise InvalidInput({"documents": [f"At most {MAX_DOCUMENTS:,} at once."]})
    shelf = index_documents(given)
    slos: dict[str, documents.Document] = {}
    for entry in shelf.slos:
        for place, name, fields in _slos(shelf, entry, server):
            if name in slos:
                shelf.wrong(place, f"There is another SLO {name} among these.")
                continue
            try:
                slos[name] = documents.validate(name, fields)
            except InvalidInput as error:
                for field, said in error.errors.items():
                    shelf.errors.setdefault(f"{place}: {field}", []).extend(said)
    if shelf.errors:
        raise InvalidInput(shelf.errors)
    return ParsedSlos(slos, tuple(shelf.remarks))


def _slos(
    shelf: DocumentIndex, entry: OpenSloEntry, server: str
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield place, name and fields of each objective; the first one has the document's name."""
    spec, at = entry.spec, f"{entry.place}.spec"
    method = spec.get("budgetingMethod", OCCURRENCES)
    if method != OCCURRENCES:
        said = "Only Occurrences: events are counted here, not the time slices that were good."
        shelf.wrong(f"{at}.budgetingMethod", said)
        return
    objectives = spec.get("objectives")
    if not isinstance(objectives, list) or not objectives:
        shelf.wrong(f"{at}.objectives", "Must be a list with at least one objective.")
        return
    noted = len(shelf.errors)
    shared = {
        "description": _text(spec.get("description") or entry.metadata.get("displayName")),
        "service": _service(shelf, entry),
        "window_days": _days(shelf, spec.get("timeWindow"), f"{at}.timeWindow"),
        **_own_annotations(shelf, entry),
    }
    rules = alert_policies.read_rules(shelf, spec, at)
    for number, objective in enumerate(objectives):
        place = f"{at}.objectives.{number}"
        if not isinstance(objective, Mapping):
            shelf.wrong(place, "Must be an object with a target.")
            continue
        fields = {**shared, "target": _target(shelf, objective, place)}
        fields |= _source(shelf, entry, objective, place, server, fields)
        if rules is not None:
            fields["rules"] = rules
        else:
            shelf.remark(entry.place, "It has no alert policies; the usual rules were taken.")
        if len(shelf.errors) == noted:
            yield place, _name(entry, objective, number), fields


def _source(
    shelf: DocumentIndex,
    entry: OpenSloEntry,
    objective: Mapping[str, Any],
    place: str,
    server: str,
    fields: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the kind and the source of an objective."""
    if any(name in objective for name in ("timeSliceTarget", "timeSliceWindow")):
        said = "Time slices are not counted here; take Occurrences of good and total events."
        shelf.wrong(f"{place}.timeSliceTarget", said)
        return {}
    within, at = (objective, place) if _has_indicator(objective) else (entry.spec, entry.place)
    at = at if within is objective else f"{at}.spec"
    if "indicatorRef" in within:
        indicator = shelf.meant(SLI, within, "indicatorRef", at)
    elif "indicator" in within:
        indicator = shelf.meant(SLI, within["indicator"], "indicatorRef", f"{at}.indicator")
    else:
        shelf.wrong(f"{at}.indicator", "Say what is counted: an indicator, or an indicatorRef.")
        return {}
    if indicator is None:
        return {}
    found = indicators.read_source(shelf, indicator, server)
    kind = {} if "kind" in fields else {"kind": "ratio"}
    return {**kind, "source": found} if found else kind


def _own_annotations(shelf: DocumentIndex, entry: OpenSloEntry) -> dict[str, Any]:
    """Return the fields of our own annotations, as exported."""
    found: dict[str, Any] = {}
    for field in ("kind", "owner", "runbook_url"):
        if said := entry.note(PREFIX + field):
            found[field] = said
    for field in ("threshold_ms", "min_events", "actions"):
        if not (said := entry.note(PREFIX + field)):
            continue
        try:
            found[field] = json.loads(said)
        except (ValueError, RecursionError):
            shelf.wrong(f"{entry.place}.metadata.annotations.{PREFIX}{field}", "Must be JSON.")
    return found


def _service(shelf: DocumentIndex, entry: OpenSloEntry) -> str:
    given = entry.spec.get("service")
    if given is None or given == UNASSIGNED:
        return ""
    if isinstance(given, str) and documents.is_valid_service(given):
        return given
    slug = _SLUG.sub("-", given.lower()).strip("-")[:60] if isinstance(given, str) else ""
    if not slug:
        shelf.wrong(f"{entry.place}.spec.service", "Must be the name of a service.")
    else:
        shelf.remark(entry.place, f"Its service {given!r} is written {slug} here.")
    return slug


def _days(shelf: DocumentIndex, given: Any, place: str) -> int:
    """Return the period in days, 30 by default."""
    windows = given if isinstance(given, list) else [given] if given is not None else []
    if not windows:
        shelf.remark(place, "No period is named; 30 days were taken.")
        return 30
    window = as_mapping(windows[0])
    written = _WINDOW.fullmatch(str(window.get("duration")))
    if len(windows) > 1 or written is None:
        shelf.wrong(place, "Must be one window, with a duration such as 28d or 4w.")
        return 30
    number, unit = int(written[1]), written[2]
    days = number * DAYS[unit] if unit in DAYS else _whole_days(number, unit)
    if not days:
        shelf.wrong(f"{place}.duration", "Must be whole days.")
        return 30
    if unit in "MQY":
        shelf.remark(place, f"{window['duration']} was taken for {days} days.")
    if window.get("isRolling") is False or "calendar" in window:
        shelf.remark(place, "A calendar's period was taken for a rolling one of that length.")
    return days


def _whole_days(number: int, unit: str) -> int:
    minutes = number * 60 if unit == "h" else number
    return 0 if minutes % 1440 else minutes // 1440


def _target(shelf: DocumentIndex, objective: Mapping[str, Any], place: str) -> Any:
    """Return the target as a share; it is validated with the rest of the SLO."""
    if "op" in objective or "value" in objective:
        shelf.remark(place, "op and value were left out: they are about a threshold metric.")
    if "compositeWeight" in objective:
        shelf.remark(place, "compositeWeight was left out: each objective is an SLO of its own.")
    percent = objective.get("targetPercent")
    if "target" in objective or percent is None:
        return objective.get("target")
    if isinstance(percent, bool) or not isinstance(percent, int | float) or not is_finite(percent):
        shelf.wrong(f"{place}.targetPercent", "Must be a number, without quotes.")
        return None
    return json_number(Decimal(str(percent)) / 100)


def _name(entry: OpenSloEntry, objective: Mapping[str, Any], number: int) -> str:
    if number == 0:
        return entry.name
    called = objective.get("displayName")
    slug = _SLUG.sub("-", called.lower()).strip("-") if isinstance(called, str) else ""
    return f"{entry.name}-{slug or number + 1}"


def _has_indicator(objective: Mapping[str, Any]) -> bool:
    return "indicator" in objective or "indicatorRef" in objective


def _text(given: Any) -> str:
    return given if isinstance(given, str) else ""
