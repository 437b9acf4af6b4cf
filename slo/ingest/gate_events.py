"""What was pushed, counted over short spans, for the gates of ramps."""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from django.db import connection

from slo.arithmetic.increments import Increment
from slo.counters.writer import LockedSli

from .series_store import Key

BATCH_SIZE = 20_000
SourceIncrement = tuple[Key, Increment]
_NOTE = """
    INSERT INTO core_eventcount (slo, instance, began_at, ended_at, good, total)
    SELECT slo, instance, to_timestamp(began::float8 / 1000000),
           to_timestamp(ended::float8 / 1000000), good, total
    FROM json_to_recordset(%s::json)
         AS grown (slo text, instance text, began bigint, ended bigint, good bigint, total bigint)
"""


def record_gate_events(grown: Iterable[SourceIncrement], locked: Mapping[int, LockedSli]) -> None:
    """Write down what sources of SLOs counted, in whole events. Gates don't ask about counters that
    are of no SLO."""
    rows: list[dict[str, Any]] = [
        {
            "slo": name,
            "instance": source,
            "began": step.began,
            "ended": step.ended,
            "good": int(step.good),
            "total": int(step.total),
        }
        for (sli, source), step in grown
        if (name := locked[sli].slo) and step.total >= 1
    ]
    with connection.cursor() as cursor:
        for start in range(0, len(rows), BATCH_SIZE):
            cursor.execute(_NOTE, [orjson.dumps(rows[start : start + BATCH_SIZE]).decode()])
