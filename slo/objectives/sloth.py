"""Import of Sloth specs: `prometheus/v1` files and PrometheusServiceLevel resources. Pure.

https://github.com/slok/sloth. Sloth's period is an option of its command; 30 days, its default, are
assumed.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from slo.arithmetic.objective import PAGE, TICKET
from slo.models.objective import PROMETHEUS, PUSH

from . import prometheus_queries, rules
from .import_notes import ImportNotes, as_mapping, read_labels

FILE_VERSION = "prometheus/v1"
API_VERSION = "sloth.slok.dev/v1"
WINDOW_DAYS = 30
UNSUPPORTED = {
    "raw": "A ready-made ratio counts no events. Use events with an error and a total query.",
    "plugin": "Plugins run only in Sloth. Use events with an error and a total query.",
    "denominator_corrected": "A corrected denominator can't be evaluated. Use plain events.",
}
DROPPED_ALERTING = {
    "name": "alerts are named after their SLO.",
    "labels": "routes choose the recipients of alerts.",
}
FIELDS = {
    "spec": ("version", "service", "labels", "slos", "slo_plugins"),
    "slo": ("name", "description", "objective", "labels", "sli", "alerting", "plugins"),
    "sli": ("events", *UNSUPPORTED),
    "events": ("error_query", "total_query"),
    "alerting": ("name", "labels", "annotations", "page_alert", "ticket_alert"),
    "alert": ("disable", "labels", "annotations"),
}
"""The fields of each part of a spec."""
RUNBOOK_ANNOTATIONS = ("runbook_url", "runbook")
SEVERITIES = {"page_alert": PAGE, "ticket_alert": TICKET}


def is_sloth(document: Mapping[str, Any]) -> bool:
    return document.get("version") == FILE_VERSION or document.get("apiVersion") == API_VERSION


def read_document(
    notes: ImportNotes, document: Mapping[str, Any], place: str, server: str
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield each SLO of a Sloth document: its path, name and fields, not validated.

    `server` is the URL of the Prometheus server, which Sloth documents never name.
    """
    spec, at = document, place
    if document.get("apiVersion") == API_VERSION:
        spec, at = as_mapping(document.get("spec")), f"{place}.spec"
    slos, service = spec.get("slos"), spec.get("service")
    if not isinstance(service, str) or not service:
        notes.wrong(f"{at}.service", "Enter the service.")
        return
    if not isinstance(slos, list) or not slos:
        notes.wrong(f"{at}.slos", "Must be a list with at least one SLO.")
        return
    notes.drop(at, _snake_case(spec), {"slo_plugins": "plugins run in Sloth alone."})
    notes.drop_unknown(at, _snake_case(spec), FIELDS["spec"])
    for number, raw in enumerate(slos):
        here = f"{at}.slos.{number}"
        one = _snake_case(as_mapping(raw))
        if not isinstance(one.get("name"), str) or not one["name"]:
            notes.wrong(f"{here}.name", "Enter a name.")
            continue
        errors_before = len(notes.errors)
        fields = _read_slo(notes, one, here, server)
        labels = {**read_labels(spec.get("labels")), **read_labels(one.get("labels"))}
        fields["service"] = service
        fields["metadata"] = {"display_name": one["name"], "labels": labels}
        if len(notes.errors) == errors_before:
            yield here, f"{service}-{one['name']}", fields


def _read_slo(
    notes: ImportNotes, one: Mapping[str, Any], place: str, server: str
) -> dict[str, Any]:
    notes.drop(place, one, {"plugins": "plugins run in Sloth alone."})
    notes.drop_unknown(place, one, FIELDS["slo"])
    notes.remark(place, f"A period of {WINDOW_DAYS} days was assumed; Sloth files have none.")
    target = notes.read_percent(one.get("objective"), f"{place}.objective")
    alerting = _snake_case(as_mapping(one.get("alerting")))
    annotations = as_mapping(alerting.get("annotations"))
    runbook = next((annotations[name] for name in RUNBOOK_ANNOTATIONS if name in annotations), "")
    return {
        "kind": "ratio",
        "target": target,
        "window_days": WINDOW_DAYS,
        "description": one.get("description") or "",
        "runbook_url": runbook,
        "source": _read_source(notes, _snake_case(as_mapping(one.get("sli"))), place, server),
        "rules": _read_rules(notes, alerting, target, f"{place}.alerting"),
    }


def _read_source(
    notes: ImportNotes, sli: Mapping[str, Any], place: str, server: str
) -> dict[str, Any]:
    at = f"{place}.sli"
    notes.drop_unknown(at, sli, FIELDS["sli"])
    for name, message in UNSUPPORTED.items():
        if sli.get(name):
            notes.wrong(f"{at}.{name}", message)
            return {}
    events = _snake_case(as_mapping(sli.get("events")))
    notes.drop_unknown(f"{at}.events", events, FIELDS["events"])
    queries = {}
    for name in FIELDS["events"]:
        text = events.get(name)
        query = prometheus_queries.remove_rates(text) if isinstance(text, str) else None
        if query is None:
            message = "Must sum rate() or increase() of counters over [{{.window}}]."
            notes.wrong(f"{at}.events.{name}", message)
            return {}
        queries[name] = query
    if not server:
        notes.remark(at, "No Prometheus URL is given in the request; push its counters.")
        return {"type": PUSH}
    good = prometheus_queries.subtract_errors(queries["total_query"], queries["error_query"])
    return {"type": PROMETHEUS, "url": server, "good": good, "total": queries["total_query"]}


def _read_rules(
    notes: ImportNotes, alerting: Mapping[str, Any], target: int | float, place: str
) -> list[dict[str, Any]]:
    """Return the workbook's rules, which Sloth has too, without those of disabled alerts."""
    notes.drop(place, alerting, DROPPED_ALERTING)
    notes.drop_unknown(place, alerting, FIELDS["alerting"])
    for name in as_mapping(alerting.get("annotations")):
        if name not in RUNBOOK_ANNOTATIONS:
            message = "Ignored: messages have their own texts."
            notes.remark(f"{place}.annotations.{name}", message)
    wanted, reason = set(), "routes choose the recipients of alerts."
    for name, severity in SEVERITIES.items():
        alert = as_mapping(alerting.get(name))
        if not alert.get("disable"):
            wanted.add(severity)
        notes.drop(f"{place}.{name}", alert, {"labels": reason, "annotations": reason})
        notes.drop_unknown(f"{place}.{name}", alert, FIELDS["alert"])
    found = rules.reachable_rules("workbook", Decimal(str(target)), WINDOW_DAYS)
    return [rule for rule in found if rule["severity"] in wanted]


def _snake_case(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields with the names that files have: `errorQuery` of resources is `error_query`."""
    return {
        "".join(f"_{each.lower()}" if each.isupper() else each for each in str(name)): value
        for name, value in fields.items()
    }
