"""Gates that wait for a number of events of an SLO. They never fail."""

from collections.abc import Sequence
from datetime import datetime

from django.db import connection

from controlplane.core import canonical

from .fields import NUMBER, Field, text, whole_number
from .kinds import GateKind
from .questions import PASS, Answer, Question
from .verdicts import FRESH, explain_too_few, no_data, read_limit

MIN_EVENTS = 100
SLO_FIELD = Field("slo", "SLO", text, placeholder="core-availability")
MIN_EVENTS_FIELD = Field(
    "min_events", "Least events", whole_number(1, 10**9), MIN_EVENTS, input=NUMBER
)

# Each row has at least one event, so reading as many rows as events are needed is always enough;
# reading all of them could mean the traffic of an hour. Rows dated ahead of the clock remain from
# before it was set back.
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


def count_events(questions: Sequence[Question], now: datetime) -> list[int]:
    """Return the number of events since each question's start; a count may stop once it is enough.

    One query, whatever the number of questions.
    """
    wanted = [(_slo(one), one.since, _needed(one)) for one in questions]
    unique = sorted(set(wanted))
    slos, since, needed = (list(column) for column in zip(*unique, strict=True))
    with connection.cursor() as cursor:
        cursor.execute(
            _COUNT, {"slos": slos, "since": since, "needed": needed, "latest": now + FRESH}
        )
        counts = dict(zip(unique, (int(total) for (total,) in cursor), strict=True))
    return [counts[one] for one in wanted]


def judge(question: Question, seen: int, _now: datetime) -> Answer:
    """Return a pass once there were enough events since the step began, else no data."""
    needed = _needed(question)
    evidence = {"seen": seen, "needed": needed, "since": canonical.timestamp(question.since)}
    if seen >= needed:
        return Answer(PASS, evidence)
    return no_data(question, explain_too_few(seen, needed), evidence)


KIND = GateKind(
    name="samples",
    label="Enough events",
    summary="at least {min_events} events of {slo}",
    passes_when="enough events of an SLO came in",
    fields=(SLO_FIELD, MIN_EVENTS_FIELD),
    look_up=count_events,
    judge=judge,
    position=40,
    can_fail=False,
)


def _slo(question: Question) -> str:
    return str(question.spec.get("slo", ""))


def _needed(question: Question) -> int:
    return read_limit(question, "min_events", MIN_EVENTS)
