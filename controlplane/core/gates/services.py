"""Services that evaluate gates, and that store the gates which apps evaluate in the background."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson
from django.db.models import Q, QuerySet

from controlplane.core.sql import fetch_all

from .kinds import GATE_KINDS
from .models import Gate
from .questions import FAIL, NO_DATA, PASS, GateAnswer, GateQuestion
from .verdicts import FRESH, Observation, evaluate_unknown_kind, truncate_evidence

_OBSERVATIONS = """
    SELECT key, verdict, observed_at, evidence::text FROM core_gate
    WHERE key = ANY(%s) AND observed_at IS NOT NULL
"""


def store_questions(questions: Sequence[GateQuestion]) -> None:
    """Store those of the gates that an app evaluates in the background.

    Gates of other kinds, and gates stored already, are skipped. Runs in the caller's transaction.
    """
    rows = [
        Gate(key=one.key, type=one.type, spec=dict(one.spec), since=one.since)
        for one in sorted(questions, key=lambda one: one.key)
        if (kind := GATE_KINDS.get(one.type)) and kind.is_stored
    ]
    Gate.objects.bulk_create(rows, ignore_conflicts=True)


def withdraw_questions(questions: Sequence[GateQuestion]) -> None:
    """Delete stored gates, which no app needs to evaluate any more, in the caller's transaction."""
    keys = [
        one.key for one in questions if (kind := GATE_KINDS.get(one.type)) is None or kind.is_stored
    ]
    if keys:
        Gate.objects.filter(key__in=keys).delete()


def evaluate_questions(questions: Sequence[GateQuestion], now: datetime) -> list[GateAnswer]:
    """Return the verdict of each gate, in the same order; one query per kind."""
    by_type: dict[str, dict[int, GateQuestion]] = {}
    for index, question in enumerate(questions):
        by_type.setdefault(question.type, {})[index] = question
    answers: dict[int, GateAnswer] = {}
    for type, group in by_type.items():
        kind = GATE_KINDS.get(type)
        fetched = kind.look_up([*group.values()], now) if kind else [None] * len(group)
        evaluate = kind.evaluate if kind else evaluate_unknown_kind
        for (index, question), data in zip(group.items(), fetched, strict=True):
            answers[index] = evaluate(question, data, now)
    return [answers[index] for index in range(len(questions))]


def find_observations(
    questions: Sequence[GateQuestion], _now: datetime
) -> list[Observation | None]:
    """Return the latest verdict that an app recorded for each gate, or None; one query."""
    fetched = {
        key: Observation(verdict, at, orjson.loads(evidence))
        for key, verdict, at, evidence in fetch_all(_OBSERVATIONS, [[one.key for one in questions]])
    }
    return [fetched.get(one.key) for one in questions]


def find_open_gates(type: str) -> QuerySet[Gate]:
    """Return the stored gates of a type, for the app that evaluates them."""
    return Gate.objects.filter(type=type)


def record_answer(
    *, key: str, verdict: str, evidence: Mapping[str, Any], observed_at: datetime, now: datetime
) -> bool:
    """Record the verdict of the app that evaluates a stored gate.

    Returns False if the gate was withdrawn or a later observation is stored. Long `evidence` is
    truncated; its `why` is shown to people. Raises ValueError for an unknown verdict.
    """
    if verdict not in (PASS, FAIL, NO_DATA):
        raise ValueError(f"{verdict!r} is not {PASS}, {FAIL} or {NO_DATA}")
    observed_at = min(observed_at, now)
    earlier = Q(observed_at__isnull=True) | Q(observed_at__lte=observed_at)
    from_before_clock_was_set_back = Q(observed_at__gt=now + FRESH)
    rows = Gate.objects.filter(earlier | from_before_clock_was_set_back, key=key)
    truncated = truncate_evidence(evidence)
    return bool(rows.update(verdict=verdict, evidence=truncated, observed_at=observed_at))
