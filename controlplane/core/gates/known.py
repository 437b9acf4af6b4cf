"""What is known of gates just now, looked up for any number of them in one query a type.

In SQL, because ramps look every second, at all of their gates.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson
from django.db import connection

from controlplane.core.gates.questions import Question
from controlplane.core.gates.verdicts import FRESH, MAX_SHOWN_BYTES, MIN_EVENTS, Said

# Each row has an event at least, so as many rows as events are needed are always enough: reading on
# could mean all the traffic of an hour. What is dated ahead of us was left by a clock that was set
# back.
_COUNT = """
    SELECT coalesce(sum(seen.total), 0)
    FROM unnest(%(slos)s::text[], %(since)s::timestamptz[], %(needed)s::bigint[])
         WITH ORDINALITY AS asked (slo, since, needed, place)
    LEFT JOIN LATERAL (
        SELECT total FROM core_eventcount
        WHERE slo = asked.slo AND began_at >= asked.since AND ended_at <= %(latest)s
        ORDER BY began_at LIMIT asked.needed
    ) AS seen ON true
    GROUP BY asked.place ORDER BY asked.place
"""
# Of long evidence only that it is there: it would be read for each gate, every second. What is
# stored long is not even unpacked.
_REPORTED = """
    SELECT name, verdict, observed_at, "by", failed_at,
           CASE WHEN length(written.text) <= %(longest)s THEN written.text END
    FROM core_externalverdict, LATERAL (
        SELECT CASE WHEN pg_column_size(evidence) <= %(longest)s THEN evidence::text END AS text
        OFFSET 0
    ) AS written
    WHERE name = ANY(%(names)s)
"""
_ANSWERED = """
    SELECT key, verdict, observed_at, evidence::text FROM core_gate
    WHERE key = ANY(%s) AND observed_at IS NOT NULL
"""


def reported(questions: Sequence[Question], _now: datetime) -> list[Said | None]:
    """What outsiders said last of each."""
    names = [str(one.spec.get("gate", "")) for one in questions]
    with connection.cursor() as cursor:
        cursor.execute(_REPORTED, {"names": sorted(set(names)), "longest": MAX_SHOWN_BYTES})
        rows = cursor.fetchall()
    said = {}
    for name, verdict, observed_at, by, failed_at, evidence in rows:
        shown = {"left_out": f"it is long; GET /api/v1/gates/{name} has it"}
        if evidence is not None:
            shown = orjson.loads(evidence)
        said[name] = Said(verdict, observed_at, shown, by, failed_at)
    return [said.get(name) for name in names]


def counted(questions: Sequence[Question], now: datetime) -> list[int]:
    """How many events began since each asks; counting may stop once there are enough."""
    asked = [(_slo(one), one.since, _needed(one)) for one in questions]
    unique = sorted(set(asked))
    slos, since, needed = (list(column) for column in zip(*unique, strict=True))
    with connection.cursor() as cursor:
        cursor.execute(
            _COUNT, {"slos": slos, "since": since, "needed": needed, "latest": now + FRESH}
        )
        seen = dict(zip(unique, (int(total) for (total,) in cursor), strict=True))
    return [seen[one] for one in asked]


def answered(questions: Sequence[Question], _now: datetime) -> list[Said | None]:
    """What an app of ours answered last to each."""
    with connection.cursor() as cursor:
        cursor.execute(_ANSWERED, [[one.key for one in questions]])
        said = {
            key: Said(verdict, at, orjson.loads(evidence)) for key, verdict, at, evidence in cursor
        }
    return [said.get(one.key) for one in questions]


LOOK_UPS: Mapping[str, Callable[[Sequence[Question], datetime], Sequence[Any]]] = {
    "external": reported,
    "samples": counted,
    "slo": answered,
    "breaker": answered,
}
"""By the type of gate; what is found stands where its question does."""


def _slo(question: Question) -> str:
    return str(question.spec.get("slo", ""))


def _needed(question: Question) -> int:
    return int(question.spec.get("min_events", MIN_EVENTS))
