"""Conversion of OpenSLO indicators to sources of counters. Pure."""

from collections.abc import Mapping
from typing import Any

from slo.models.objective import PROMETHEUS, PUSH
from slo.objectives.import_notes import as_mapping

from . import threshold_metrics
from .document_index import DocumentIndex, OpenSloEntry
from .metric_sources import OURS, find_url, read_metric, read_query


def read_indicator(
    index: DocumentIndex,
    indicator: OpenSloEntry,
    objective: Mapping[str, Any],
    place: str,
    server: str,
) -> dict[str, Any]:
    """Convert an indicator, for one objective, to fields of an SLO: its source, maybe its kind.

    If it is invalid, add an error. `server` is the Prometheus URL for indicators that name none.
    """
    if "thresholdMetric" in indicator.spec:
        return threshold_metrics.read_threshold(index, indicator, objective, place, server)
    if "op" in objective or "value" in objective:
        index.remark(place, "op and value were ignored: they apply to threshold metrics only.")
    return {"source": _read_source(index, indicator, server)}


def _read_source(
    index: DocumentIndex, indicator: OpenSloEntry, server: str
) -> dict[str, Any] | None:
    """Convert an indicator to the `source` field of an SLO.

    If it is invalid, add an error and return None. `server` is the Prometheus URL for indicators
    that name none.
    """
    spec, at = indicator.spec, f"{indicator.place}.spec"
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
    one = read_metric(index, as_mapping(ratio[which]), f"{at}.{which}")
    total = read_metric(index, as_mapping(ratio["total"]), f"{at}.total")
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
    one, total = map(read_query, metrics)
    if not one or not total:
        index.wrong(at, "The query must be at metricSource.spec.query.")
        return None
    url = find_url(metrics, server)
    if not url:
        message = "No Prometheus URL is given, by a DataSource or in the request"
        index.remark(indicator.place, f"{message}; push its counters.")
        return {"type": PUSH}
    # The counter of bad events often does not exist until the first one.
    good = one if which == "good" else f"({total}) - (({one}) or vector(0))"
    return {"type": PROMETHEUS, "url": url, "good": good, "total": total}
