"""Minimum-sample gates: they wait for a minimum number of events of an SLO, and never fail."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from controlplane.core import canonical
from controlplane.core.sql import fetch_all

from .fields import NUMBER, GateField, check_text, whole_number_between
from .kinds import GateKind
from .questions import PASS, GateAnswer, GateQuestion
from .verdicts import (
    FRESH,
    build_no_data,
    explain_too_few,
    format_events,
    get_explanation,
    read_limit,
)

MIN_EVENTS = 100
SLOS = "slos"
"""Name of the list of SLOs."""
SLO_FIELD = GateField("slo", "SLO", check_text, placeholder="core-availability", options=SLOS)
MIN_EVENTS_FIELD = GateField(
    "min_events", "Minimum events", whole_number_between(1, 10**9), MIN_EVENTS, input=NUMBER
)

# Each row counts at least one event, so reading as many rows as events are needed is enough. Rows
# dated in the future are ignored: the clock was set back since.
_COUNT = """
    SELECT coalesce(sum(counted.total), 0)
    FROM unnest(%(slos)s::text[], %(since)s::timestamptz[], %(needed)s::bigint[])
         WITH ORDINALITY AS step (slo, since, needed, place)
    LEFT JOIN LATERAL (
        SELECT total FROM core_eventcount
        WHERE slo = step.slo AND began_at >= step.since AND ended_at <= %(latest)s
        ORDER BY began_at LIMIT step.needed
    ) AS counted ON true
    GROUP BY step.place ORDER BY step.place
"""


def count_events(questions: Sequence[GateQuestion], now: datetime) -> list[int]:
    """Return the number of events since the step began, for each gate, in one query.

    Counting stops once the gate's minimum is reached.
    """
    keys = [(str(one.spec.get("slo", "")), one.since, _read_min_events(one)) for one in questions]
    unique = sorted(set(keys))
    slos, since, needed = (list(column) for column in zip(*unique, strict=True))
    parameters = {"slos": slos, "since": since, "needed": needed, "latest": now + FRESH}
    totals = (int(total) for (total,) in fetch_all(_COUNT, parameters))
    counts = dict(zip(unique, totals, strict=True))
    return [counts[one] for one in keys]


def evaluate(question: GateQuestion, total: int, _now: datetime) -> GateAnswer:
    """Return a pass once enough events have occurred since the step began; before, "no data"."""
    needed = _read_min_events(question)
    evidence = {"seen": total, "needed": needed, "since": canonical.timestamp(question.since)}
    if total >= needed:
        return GateAnswer(PASS, evidence)
    return build_no_data(question, explain_too_few(total, needed), evidence)


def describe_finding(spec: Mapping[str, Any], evidence: Mapping[str, Any]) -> str:
    """Return `100 events since the step began`; counting stops at the minimum."""
    if "seen" not in evidence:
        return get_explanation(evidence)
    return f"{format_events(evidence['seen'])} since the step began"


KIND = GateKind(
    name="samples",
    label="Enough events",
    summary="at least {min_events} events of {slo}",
    passes_when="an SLO has counted enough events",
    fields=(SLO_FIELD, MIN_EVENTS_FIELD),
    look_up=count_events,
    evaluate=evaluate,
    position=40,
    finding=describe_finding,
    can_fail=False,
)


def _read_min_events(question: GateQuestion) -> int:
    return read_limit(question, "min_events", MIN_EVENTS)
