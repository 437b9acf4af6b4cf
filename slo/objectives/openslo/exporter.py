"""Export of SLOs as OpenSLO documents; importing them again gives the same SLOs. Pure."""

import json
from collections.abc import Iterable, Mapping

import yaml

from slo.models.objective import PROMETHEUS
from slo.objectives.documents import Document

from .alert_policies import SHORT
from .document_index import CONDITION, POLICY, SLO, SOURCE, VERSION
from .indicators import OURS
from .parser import OCCURRENCES, PREFIX, UNASSIGNED


def export_documents(slos: Mapping[str, Document]) -> list[Document]:
    """Return the data sources, and each SLO with its indicator and alert policies inside it."""
    urls = dict.fromkeys(
        slo["source"]["url"] for slo in slos.values() if slo["source"]["type"] == PROMETHEUS
    )
    names = {url: f"prometheus-{number}" for number, url in enumerate(urls, start=1)}
    sources = [_data_source(name, url) for url, name in names.items()]
    return [*sources, *(_slo(name, slo, names) for name, slo in slos.items())]


def to_yaml(found: Iterable[Document]) -> str:
    """Return documents as YAML."""
    return yaml.safe_dump_all(
        found, sort_keys=False, allow_unicode=True, explicit_start=True, width=100
    )


def _slo(name: str, slo: Document, sources: Mapping[str, str]) -> Document:
    return {
        "apiVersion": VERSION,
        "kind": SLO,
        "metadata": {"name": name, "annotations": _annotations(slo)},
        "spec": {
            "description": slo["description"],
            "service": slo["service"] or UNASSIGNED,
            "indicator": {
                "metadata": {"name": f"{name}-indicator"},
                "spec": {"ratioMetric": _ratio(name, slo["source"], sources)},
            },
            "timeWindow": [{"duration": f"{slo['window_days']}d", "isRolling": True}],
            "budgetingMethod": OCCURRENCES,
            "objectives": [{"displayName": name, "target": slo["target"]}],
            "alertPolicies": [_policy(name, rule) for rule in slo["rules"]],
        },
    }


def _annotations(slo: Document) -> dict[str, str]:
    """Return the fields that OpenSLO does not have, as annotations."""
    found = {f"{PREFIX}kind": slo["kind"]}
    for field in ("owner", "runbook_url"):
        if slo[field]:
            found[PREFIX + field] = slo[field]
    for field in ("threshold_ms", "min_events", "actions"):
        if slo[field]:
            found[PREFIX + field] = json.dumps(slo[field], sort_keys=True)
    return found


def _ratio(name: str, source: Document, sources: Mapping[str, str]) -> Document:
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


def _policy(name: str, rule: Document) -> Document:
    called = f"{name}-{rule['severity']}-{rule['long']}"
    condition = {
        "kind": CONDITION,
        "metadata": {"name": called, "annotations": {SHORT: rule["short"]}},
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
        "metadata": {"name": called},
        "spec": {"alertWhenBreaching": True, "conditions": [condition]},
    }


def _data_source(name: str, url: str) -> Document:
    return {
        "apiVersion": VERSION,
        "kind": SOURCE,
        "metadata": {"name": name},
        "spec": {"type": "Prometheus", "connectionDetails": {"url": url}},
    }
