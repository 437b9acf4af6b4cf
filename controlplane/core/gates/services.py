"""Questions of gates: storing, answering, and evaluating them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson
from django.db import connection
from django.db.models import Q, QuerySet

from controlplane.core import retention

from .kinds import GATE_KINDS
from .models import Gate
from .questions import FAIL, NO_DATA, PASS, Answer, Question
from .retention_rules import EVENTS, VERDICTS
from .verdicts import FRESH, Observation, judge_unknown, truncate_evidence

_OBSERVATIONS = """
    SELECT key, verdict, observed_at, evidence::text FROM core_gate
    WHERE key = ANY(%s) AND observed_at IS NOT NULL
"""


def store_questions(questions: Sequence[Question]) -> None:
    """Store the questions that an app answers, in the caller's transaction.

    Kinds whose data is there in any case need no row. A question that is stored already stays as
    it is.
    """
    rows = [
        Gate(key=one.key, type=one.type, spec=dict(one.spec), since=one.since)
        for one in sorted(questions, key=lambda one: one.key)
        if (kind := GATE_KINDS.get(one.type)) and kind.is_stored
    ]
    Gate.objects.bulk_create(rows, ignore_conflicts=True)


def withdraw_questions(questions: Sequence[Question]) -> None:
    """Delete the stored ones among these questions, in the caller's transaction."""
    keys = [
        one.key for one in questions if (kind := GATE_KINDS.get(one.type)) is None or kind.is_stored
    ]
    if keys:
        Gate.objects.filter(key__in=keys).delete()


def evaluate(questions: Sequence[Question], now: datetime) -> list[Answer]:
    """Return the answer to each question now, in their order; one query for each kind."""
    places: dict[str, list[int]] = {}
    for place, one in enumerate(questions):
        places.setdefault(one.type, []).append(place)
    answers: dict[int, Answer] = {}
    for type, own in places.items():
        kind = GATE_KINDS.get(type)
        some = [questions[place] for place in own]
        found = kind.look_up(some, now) if kind else [None] * len(some)
        judge = kind.judge if kind else judge_unknown
        for place, one, known in zip(own, some, found, strict=True):
            answers[place] = judge(one, known, now)
    return [answers[place] for place in range(len(questions))]


def find_observations(questions: Sequence[Question], _now: datetime) -> list[Observation | None]:
    """Return the latest answer that an app recorded to each stored question, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(_OBSERVATIONS, [[one.key for one in questions]])
        found = {
            key: Observation(verdict, at, orjson.loads(evidence))
            for key, verdict, at, evidence in cursor
        }
    return [found.get(one.key) for one in questions]


def find_open_gates(type: str) -> QuerySet[Gate]:
    """Return the stored questions of this type, for the app that answers them."""
    return Gate.objects.filter(type=type)


def record_answer(
    *, key: str, verdict: str, evidence: Mapping[str, Any], observed_at: datetime, now: datetime
) -> bool:
    """Answer a stored question.

    Returns False if it was withdrawn or a later observation stands. `evidence` is truncated if it
    is long; a `why` in it is shown. Raises ValueError for an unknown verdict.
    """
    if verdict not in (PASS, FAIL, NO_DATA):
        raise ValueError(f"{verdict!r} is not {PASS}, {FAIL} or {NO_DATA}")
    observed_at = min(observed_at, now)
    earlier = Q(observed_at__isnull=True) | Q(observed_at__lte=observed_at)
    from_before_clock_was_set_back = Q(observed_at__gt=now + FRESH)
    rows = Gate.objects.filter(earlier | from_before_clock_was_set_back, key=key)
    kept = truncate_evidence(evidence)
    return bool(rows.update(verdict=verdict, evidence=kept, observed_at=observed_at))


def purge_expired(now: datetime, *, at_once: int, most: int) -> int:
    """Delete up to `most` expired event counts and external verdicts, `at_once` per statement.

    Returns the number of deleted rows.
    """
    return retention.purge([EVENTS, VERDICTS], now, at_once=at_once, most=most)
