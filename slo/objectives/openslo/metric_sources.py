"""Metric sources of OpenSLO indicators: their type, query and address. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from slo.models.objective import PROMETHEUS
from slo.objectives.import_notes import as_mapping

from .document_index import SOURCE, DocumentIndex

OURS = "switchgear"
"""Type of an OpenSLO metric source whose counters are pushed to this API."""
QUERIES = ("query", "promql", "promQL", "queryString")
ADDRESSES = ("url", "server", "address", "endpoint")


def read_metric(
    index: DocumentIndex, raw: Mapping[str, Any], place: str
) -> Mapping[str, Any] | None:
    """Return a metric's `type`, `spec` and data source's `connection`; None if it has no source."""
    metric = as_mapping(raw.get("metricSource"))
    if not metric:
        index.wrong(f"{place}.metricSource", "Add a metricSource.")
        return None
    found = {"type": PROMETHEUS, **metric, "connection": {}}
    if reference := metric.get("metricSourceRef"):
        known = index.entries.get((SOURCE, str(reference)))
        if known is not None:
            found["type"] = metric.get("type") or known.spec.get("type") or PROMETHEUS
            found["connection"] = as_mapping(known.spec.get("connectionDetails"))
        else:
            index.remark(place, f"The DataSource {reference} is not among these documents.")
    return {**found, "type": str(found["type"]).lower()}


def first_text(fields: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((fields[name] for name in names if isinstance(fields.get(name), str)), "")


def read_query(metric: Mapping[str, Any]) -> str:
    return first_text(as_mapping(metric.get("spec")), QUERIES).strip()


def find_url(metrics: Iterable[Mapping[str, Any]], server: str) -> str:
    """Return the URL of the first metric that names one, else `server`."""
    details = (
        {**as_mapping(metric.get("spec")), **as_mapping(metric.get("connection"))}
        for metric in metrics
    )
    return next((found for one in details if (found := first_text(one, ADDRESSES))), server)
