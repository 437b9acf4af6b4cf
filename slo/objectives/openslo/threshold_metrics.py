"""Conversion of OpenSLO threshold metrics to counters of good events, where that is exact. Pure.

A threshold metric is a value, such as a duration, that is good on one side of a limit. A Prometheus
histogram counts the values up to each of its bounds, so its selector can be converted.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from controlplane.core.json_values import is_finite
from slo.arithmetic.objective import json_number
from slo.models.objective import PROMETHEUS, PUSH
from slo.objectives.import_notes import as_mapping

from .document_index import DocumentIndex, OpenSloEntry
from .metric_sources import find_url, read_metric, read_query

BELOW = ("lt", "lte")
UNIT_MS = {"_seconds": Decimal(1000), "_milliseconds": Decimal(1), "_ms": Decimal(1)}
"""Milliseconds in the unit that the name of a histogram ends with."""
_SELECTOR = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*?)(?:_bucket)?\s*(?:\{([^{}]*)\})?")
_EDGE_LABEL = re.compile(r"(^|,)\s*le\s*(=|!)")


def read_threshold(
    index: DocumentIndex,
    indicator: OpenSloEntry,
    objective: Mapping[str, Any],
    place: str,
    server: str,
) -> dict[str, Any]:
    """Convert a threshold metric, for one objective, to an SLO's kind, threshold and source.

    If it can't be converted, add an error that names the field.
    """
    at = f"{indicator.place}.spec.thresholdMetric"
    limit = _read_limit(index, objective, place)
    metric = read_metric(index, as_mapping(indicator.spec["thresholdMetric"]), at)
    if limit is None or metric is None:
        return {}
    if metric["type"] != PROMETHEUS:
        index.remark(place, f"value {limit} was taken as milliseconds.")
        message = f"{metric['type']} is not supported as a source; push its counters."
        index.remark(indicator.place, message)
        return {
            "kind": "latency",
            "threshold_ms": json_number(limit),
            "source": {"type": PUSH},
        }
    return _read_histogram(index, indicator, metric, limit, server, at)


def _read_limit(index: DocumentIndex, objective: Mapping[str, Any], place: str) -> Decimal | None:
    operator, value = objective.get("op"), objective.get("value")
    if operator not in BELOW:
        index.wrong(f"{place}.op", "Must be lt or lte: a threshold metric is good below its value.")
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not is_finite(value):
        index.wrong(f"{place}.value", "Must be a number, without quotes.")
        return None
    if operator == "lt":
        index.remark(place, "lt was replaced by lte: an event of exactly this value is good.")
    return Decimal(str(value))


def _read_histogram(
    index: DocumentIndex,
    indicator: OpenSloEntry,
    metric: Mapping[str, Any],
    limit: Decimal,
    server: str,
    at: str,
) -> dict[str, Any]:
    written = _SELECTOR.fullmatch(read_query(metric))
    labels = (written[2] or "").strip().rstrip(",") if written else ""
    if written is None or _EDGE_LABEL.search(labels):
        message = 'Must be a selector of a histogram, such as request_duration_seconds{job="shop"}.'
        index.wrong(f"{at}.metricSource.spec.query", message)
        return {}
    base = written[1]
    unit = next((size for end, size in UNIT_MS.items() if base.endswith(end)), None)
    found: dict[str, Any] = {"kind": "ratio"}
    if unit is not None:
        found = {"kind": "latency", "threshold_ms": json_number(limit * unit)}
    url = find_url([metric], server)
    if not url:
        message = "No Prometheus URL is given, by a DataSource or in the request"
        index.remark(indicator.place, f"{message}; push its counters.")
        return {**found, "source": {"type": PUSH}}
    edge = _match_edge(limit)
    index.remark(indicator.place, f"The histogram {base} must have a bucket with {edge}.")
    good = f"sum({base}_bucket{{{', '.join(filter(None, (labels, edge)))}}})"
    total = f"sum({base}_count{{{labels}}})" if labels else f"sum({base}_count)"
    return {**found, "source": {"type": PROMETHEUS, "url": url, "good": good, "total": total}}


def _match_edge(limit: Decimal) -> str:
    """Return a matcher of a bucket's bound, which some exporters write as 5 and others as 5.0."""
    number = f"{limit.normalize():f}"
    return f'le="{number}"' if "." in number else f'le=~"{number}([.]0)?"'
