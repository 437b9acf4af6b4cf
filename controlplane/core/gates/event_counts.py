"""Event counts of SLOs over short spans, summed for the gates of ramps."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson

from controlplane.core.sql import execute, fetch_all

INSERT = "INSERT INTO core_eventcount (slo, instance, began_at, ended_at, good, total)"
"""Start of an INSERT statement, for callers that write event counts along with other rows."""
BATCH_SIZE = 20_000
_INSERT_ROWS = f"""
    {INSERT}
    SELECT slo, instance, to_timestamp(began::float8 / 1000000),
           to_timestamp(ended::float8 / 1000000), good, total
    FROM json_to_recordset(%s::json)
         AS added (slo text, instance text, began bigint, ended bigint, good bigint, total bigint)
"""  # noqa: S608
# Sum counts that ended by `first` and counts that ended after `last`. Subtract counts from before
# `start` that ended between `first` and `last`, because the caller's minutes include them.
_EDGES = """
    SELECT coalesce(head.good, 0) + coalesce(tail.good, 0) - coalesce(across.good, 0),
           coalesce(head.total, 0) + coalesce(tail.total, 0) - coalesce(across.total, 0)
    FROM unnest(%(slos)s::text[], %(starts)s::timestamptz[], %(firsts)s::timestamptz[],
                %(lasts)s::timestamptz[])
         WITH ORDINALITY AS span (slo, start, first, last, place)
    LEFT JOIN LATERAL (
        SELECT sum(good) AS good, sum(total) AS total FROM core_eventcount
        WHERE slo = span.slo AND began_at >= span.start AND began_at <= span.first
          AND ended_at <= span.first
    ) head ON true
    LEFT JOIN LATERAL (
        SELECT sum(good) AS good, sum(total) AS total FROM core_eventcount
        WHERE slo = span.slo AND began_at >= greatest(span.start, span.last - %(longest)s)
          AND began_at <= %(now)s AND ended_at > span.last AND ended_at <= %(now)s
    ) tail ON true
    LEFT JOIN LATERAL (
        SELECT sum(good) AS good, sum(total) AS total FROM core_eventcount
        WHERE slo = span.slo AND began_at >= span.start - %(longest)s AND began_at < span.start
          AND ended_at > span.first AND ended_at <= span.last
    ) across ON true
    ORDER BY span.place
"""


@dataclass(frozen=True)
class EdgeSpan:
    """The two ends of a span of time of an SLO, for which event counts per minute are too coarse.

    The ends run from `start` to `first` and from `last` until now.
    """

    slo: str
    start: datetime
    first: datetime
    last: datetime


def record(rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert event counts of SLOs.

    Each row has `slo`, `instance`, `began` and `ended` (microseconds since 1970), `good` and
    `total`.
    """
    for start in range(0, len(rows), BATCH_SIZE):
        execute(_INSERT_ROWS, [orjson.dumps(rows[start : start + BATCH_SIZE]).decode()])


def sum_edges(
    spans: Iterable[EdgeSpan], *, longest: timedelta, now: datetime
) -> list[tuple[int, int]]:
    """Return the numbers of good and of all events in the two ends of each span, added up.

    A count that crosses `start` or `last` is ignored if it covers more than `longest`.
    """
    spans = list(spans)
    arguments: dict[str, Any] = {
        "slos": [span.slo for span in spans],
        "starts": [span.start for span in spans],
        "firsts": [span.first for span in spans],
        "lasts": [span.last for span in spans],
        "now": now,
        "longest": longest,
    }
    return [(good, total) for good, total in fetch_all(_EDGES, arguments)]
