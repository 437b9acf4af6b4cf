"""Stored statuses of SLOs: one row each, replaced every minute."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson
from django.db import connection

from controlplane.core.canonical import timestamp
from slo.arithmetic.evaluate import RuleEvaluation
from slo.models import SloStatus

from .evaluator import EvaluatedSlo

# SLOs that were deleted meanwhile are left out. All rows are passed as one JSON text, because
# arrays of texts would take longer than the evaluation.
_UPSERT = """
    INSERT INTO slo_standing AS old (slo_id, minute, state, since, burn_rates, coverage, rules,
                                     remaining_ratio, exhausts_at)
    SELECT new.slo, %(minute)s, new.state, %(at)s, new.burn_rates, new.coverage, new.rules,
           new.remaining, new.exhausts
    FROM json_to_recordset(%(rows)s::json)
         AS new (slo bigint, state text, burn_rates jsonb, coverage jsonb, rules jsonb,
                 remaining float8, exhausts timestamptz)
    JOIN slo_slo ON slo_slo.id = new.slo
    ON CONFLICT (slo_id) DO UPDATE
    SET minute = excluded.minute, state = excluded.state, burn_rates = excluded.burn_rates,
        coverage = excluded.coverage, rules = excluded.rules,
        remaining_ratio = excluded.remaining_ratio, exhausts_at = excluded.exhausts_at,
        since = CASE WHEN old.state = excluded.state THEN least(old.since, excluded.since)
                     ELSE excluded.since END
"""

RuleSince = Mapping[int, Mapping[str, datetime]]
"""The time since which each rule has been in its state, by SLO id and rule key."""


def load_states() -> dict[int, str]:
    return dict(SloStatus.objects.filter(slo__removed_at=None).values_list("pk", "state"))


def load_rule_since(evaluated: Sequence[EvaluatedSlo], at: datetime) -> RuleSince:
    """Return the time since which each rule has been in its state: `at` if it has just changed."""
    before = SloStatus.objects.in_bulk([one.slo.pk for one in evaluated]) if evaluated else {}
    return {
        one.slo.pk: {
            result.rule.key: _state_since(result, before.get(one.slo.pk), at)
            for result in one.evaluation.rules
        }
        for one in evaluated
    }


def _state_since(result: RuleEvaluation, before: SloStatus | None, at: datetime) -> datetime:
    current = result.document()
    for rule in before.rules if before else ():
        if current.items() <= rule.items() and "since" in rule:
            return min(at, datetime.fromisoformat(rule["since"]))
    return at


def save_statuses(
    evaluated: Sequence[EvaluatedSlo], since: RuleSince, minute: int, at: datetime
) -> None:
    """Store the statuses of a minute, which ends at `at`.

    For SLOs in `since`, each rule is stored with the time since which it has been in its state.
    """
    rows = [
        {
            "slo": one.slo.pk,
            "state": one.evaluation.state,
            "burn_rates": one.evaluation.burn_rates,
            "coverage": one.evaluation.coverage,
            "rules": _rule_documents(one.evaluation.rules, since.get(one.slo.pk)),
            "remaining": one.evaluation.remaining_ratio,
            "exhausts": one.evaluation.exhausts_at,
        }
        for one in evaluated
    ]
    with connection.cursor() as cursor:
        cursor.execute(_UPSERT, {"minute": minute, "at": at, "rows": orjson.dumps(rows).decode()})


def _rule_documents(
    rules: Sequence[RuleEvaluation], since: Mapping[str, datetime] | None
) -> list[dict[str, Any]]:
    if since is None:
        return [one.document() for one in rules]
    return [{**one.document(), "since": timestamp(since[one.rule.key])} for one in rules]
