"""Export of SLOs as OpenSLO documents."""

import json
from collections.abc import Collection, Iterable, Mapping

import yaml

from controlplane.core.errors import NotFound
from slo.models import Slo
from slo.models.objective import PROMETHEUS
from slo.objectives import documents
from slo.objectives.documents import Document

from . import kept_metadata
from .document_index import CONDITION, POLICY, SLO, SOURCE, VERSION
from .metric_sources import OURS
from .parser import OCCURRENCES, PREFIX, SHORT, SLICE_WINDOW, TIMESLICES, UNASSIGNED


def export_slos(names: Collection[str] = ()) -> list[documents.Document]:
    """Return the named SLOs, or all, as OpenSLO documents. Raise :class:`NotFound`."""
    rows = Slo.objects.present().order_by("name")
    if names:
        rows = rows.filter(name__in=names)
    found = {slo.name: documents.to_document(slo) for slo in rows}
    if missing := sorted(set(names) - found.keys()):
        raise NotFound(f"There is no SLO {missing[0]}.")
    return export_documents(found)


def export_documents(slos: Mapping[str, Document]) -> list[Document]:
    """Convert SLO documents (by name) to OpenSLO documents, preceded by their data sources."""
    urls = dict.fromkeys(
        slo["source"]["url"] for slo in slos.values() if slo["source"]["type"] == PROMETHEUS
    )
    names = {url: f"prometheus-{number}" for number, url in enumerate(urls, start=1)}
    sources = [
        {
            "apiVersion": VERSION,
            "kind": SOURCE,
            "metadata": {"name": name},
            "spec": {"type": "Prometheus", "connectionDetails": {"url": url}},
        }
        for url, name in names.items()
    ]
    return [*sources, *(_export_slo(name, slo, names) for name, slo in slos.items())]


def to_yaml(found: Iterable[Document]) -> str:
    return yaml.safe_dump_all(
        found, sort_keys=False, allow_unicode=True, explicit_start=True, width=100
    )


def _export_slo(name: str, slo: Document, sources: Mapping[str, str]) -> Document:
    metadata, slice_target = slo["metadata"], slo["slice_target"]
    objective = {"displayName": metadata.get("objective", name), "target": slo["target"]}
    if slice_target is not None:
        objective |= {"timeSliceTarget": slice_target, "timeSliceWindow": SLICE_WINDOW}
    return {
        "apiVersion": VERSION,
        "kind": SLO,
        "metadata": {
            "name": name,
            **kept_metadata.export_names(metadata),
            "annotations": metadata.get("annotations", {}) | _export_annotations(slo),
        },
        "spec": {
            "description": slo["description"],
            "service": slo["service"] or UNASSIGNED,
            "indicator": {
                "metadata": kept_metadata.export_indicator(metadata, name),
                "spec": {"ratioMetric": _export_ratio(name, slo["source"], sources)},
            },
            "timeWindow": [{"duration": f"{slo['window_days']}d", "isRolling": True}],
            "budgetingMethod": OCCURRENCES if slice_target is None else TIMESLICES,
            "objectives": [objective],
            "alertPolicies": [_export_policy(name, rule) for rule in slo["rules"]],
        },
    }


def _export_annotations(slo: Document) -> dict[str, str]:
    found = {f"{PREFIX}kind": slo["kind"]}
    for field in ("owner", "runbook_url"):
        if slo[field]:
            found[PREFIX + field] = slo[field]
    for field in ("threshold_ms", "min_events", "actions"):
        if slo[field]:
            found[PREFIX + field] = json.dumps(slo[field], sort_keys=True)
    return found


def _export_ratio(name: str, source: Document, sources: Mapping[str, str]) -> Document:
    def counter(which: str) -> Document:
        if source["type"] != PROMETHEUS:
            return {"metricSource": {"type": OURS, "spec": {"slo": name, "counter": which}}}
        return {
            "metricSource": {
                "metricSourceRef": sources[source["url"]],
                "type": "Prometheus",
                "spec": {"query": source[which]},
            }
        }

    return {"counter": True, "good": counter("good"), "total": counter("total")}


def _export_policy(name: str, rule: Document) -> Document:
    policy_name = f"{name}-{rule['severity']}-{rule['long']}"
    condition = {
        "kind": CONDITION,
        "metadata": {"name": policy_name, "annotations": {SHORT: rule["short"]}},
        "spec": {
            "severity": rule["severity"],
            "condition": {
                "kind": "burnrate",
                "op": "gt",
                "threshold": rule["burn_rate"],
                "lookbackWindow": rule["long"],
            },
        },
    }
    return {
        "kind": POLICY,
        "metadata": {"name": policy_name},
        "spec": {"alertWhenBreaching": True, "conditions": [condition]},
    }
