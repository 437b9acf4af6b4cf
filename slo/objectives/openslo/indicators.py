"""Conversion of OpenSLO indicators to sources of counters. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from slo.models.objective import PROMETHEUS, PUSH

from .document_index import SOURCE, DocumentIndex, OpenSloEntry, as_mapping

OURS = "switchgear"
"""Type of an OpenSLO metric source whose counters are pushed to this API."""
QUERIES = ("query", "promql", "promQL", "queryString")
ADDRESSES = ("url", "server", "address", "endpoint")


def read_source(
    index: DocumentIndex, indicator: OpenSloEntry, server: str
) -> dict[str, Any] | None:
    """Convert an indicator to the `source` field of an SLO.

    If it is invalid, add an error and return None. `server` is the Prometheus URL for indicators
    that name none.
    """
    spec, at = indicator.spec, f"{indicator.place}.spec"
    if "thresholdMetric" in spec:
        message = "A thresholdMetric counts no events. Use a ratioMetric"
        index.wrong(f"{at}.thresholdMetric", f"{message}, good of total.")
        return None
    ratio = as_mapping(spec.get("ratioMetric"))
    at = f"{at}.ratioMetric"
    if "raw" in ratio:
        index.wrong(f"{at}.raw", "A ready-made ratio can't be used. Give good and total.")
        return None
    if ratio.get("counter") is False:
        index.wrong(f"{at}.counter", "Must be true: only growing counters are supported.")
        return None
    which = next((name for name in ("good", "bad") if name in ratio), "")
    if not which or "total" not in ratio:
        index.wrong(at, "Must have total, and good or bad.")
        return None
    one = _read_metric(index, as_mapping(ratio[which]), f"{at}.{which}")
    total = _read_metric(index, as_mapping(ratio["total"]), f"{at}.total")
    if one is None or total is None:
        return None
    kinds = {one.get("type", PROMETHEUS), total.get("type", PROMETHEUS)}
    if kinds != {PROMETHEUS}:
        if kinds != {OURS}:
            foreign = ", ".join(sorted(map(str, kinds - {PROMETHEUS, OURS}))) or "only one of them"
            message = f"{foreign} is not supported as a source; push its counters."
            index.remark(indicator.place, message)
        return {"type": PUSH}
    return _read_prometheus(index, indicator, which, (one, total), server, at)


def _read_prometheus(
    index: DocumentIndex,
    indicator: OpenSloEntry,
    which: str,
    metrics: tuple[Mapping[str, Any], Mapping[str, Any]],
    server: str,
    at: str,
) -> dict[str, Any] | None:
    specs = (as_mapping(metric.get("spec")) for metric in metrics)
    one, total = (_first_text(spec, QUERIES).strip() for spec in specs)
    if not one or not total:
        index.wrong(at, "The query must be at metricSource.spec.query.")
        return None
    details = (
        {**as_mapping(metric.get("spec")), **as_mapping(metric.get("connection"))}
        for metric in metrics
    )
    url = next((found for one in details if (found := _first_text(one, ADDRESSES))), server)
    if not url:
        message = "No Prometheus URL is given, by a DataSource or in the request"
        index.remark(indicator.place, f"{message}; push its counters.")
        return {"type": PUSH}
    # The counter of bad events often does not exist until the first one.
    good = one if which == "good" else f"({total}) - (({one}) or vector(0))"
    return {"type": PROMETHEUS, "url": url, "good": good, "total": total}


def _read_metric(
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


def _first_text(fields: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((fields[name] for name in names if isinstance(fields.get(name), str)), "")
