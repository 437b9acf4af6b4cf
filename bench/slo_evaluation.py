"""Measures the periodic evaluation of a thousand and of ten thousand SLOs.

The evaluation runs in this process; no other tasks run. A month of history should cost as much as
a day, because the totals of a window are looked up.
"""

from dataclasses import dataclass
from datetime import datetime
from statistics import median

from . import fixtures
from .ticks import TickCost, combine_costs, measure_tick

ROUNDS = 5
FEW, MANY = 1_000, 10_000
DAY, MONTH = 1, 30
RECENT_DAYS = 3
"""The last days whose minutes are stored as a row each; older minutes are packed by hour."""

_SLIS = """
    INSERT INTO slo_sli (slo_id, metric, service, first, last, source_error, created_at)
    SELECT id, '', '', %(first)s, %(last)s, '', created_at FROM slo_slo WHERE service = 'bench'
"""
_MINUTES = """
    INSERT INTO slo_minute (sli_id, minute, good, total, covered)
    SELECT i.id, m, m * 1999.0, m * 2000.0, m - %(first)s
    FROM slo_sli i, generate_series(%(begin)s, %(last)s, 5) AS m
    WHERE i.slo_id IS NOT NULL
"""
_HOURS = """
    INSERT INTO slo_hour (sli_id, hour, good, total, covered)
    SELECT i.id, h,
           ARRAY(SELECT (h * 60 + n) * 1999.0 FROM generate_series(0, 59) n),
           ARRAY(SELECT (h * 60 + n) * 2000.0 FROM generate_series(0, 59) n),
           ARRAY(SELECT h * 60 + n - %(first)s FROM generate_series(0, 59) n)
    FROM slo_sli i, generate_series(%(first)s / 60, %(begin)s / 60 - 1, 6) AS h
    WHERE i.slo_id IS NOT NULL
"""


@dataclass(frozen=True)
class EvaluationCosts:
    """The median cost of evaluating `count` SLOs that have `days` of history."""

    count: int
    days: int
    turn: TickCost


def measure() -> list[EvaluationCosts]:
    return [_measure(FEW, DAY), _measure(FEW, MONTH), _measure(MANY, DAY)]


def _measure(count: int, days: int) -> EvaluationCosts:
    from controlplane.core.clock import db_now
    from slo.arithmetic.minutes import EVALUATION_DELAY, end_of
    from slo.models import SloStatus

    now = db_now()
    last = _create_history(count, days, now)
    try:
        costs = [_run_tick(end_of(last + n) + EVALUATION_DELAY) for n in range(1, ROUNDS + 2)]
        known = SloStatus.objects.filter(state="ok").count()
        if known != count:
            raise SystemExit(f"bench: {known} of {count} SLOs were judged to be ok")
    finally:
        fixtures.delete_slos()
    # The first tick warms up, and inserts every row.
    return EvaluationCosts(count, days, combine_costs(costs[1:], median))


def _create_history(count: int, days: int, now: datetime) -> int:
    """Create SLOs with a history that ends an hour ago; return its last minute.

    Older hours and minutes are sparse, as that does not change the cost of look-ups.
    """
    from slo.arithmetic.minutes import last_ended

    last = last_ended(now) - 60
    first = (last - days * 24 * 60) // 60 * 60
    begin = max(first, (last - RECENT_DAYS * 24 * 60) // 60 * 60)
    fixtures.insert_slos(count, now, fixtures.PAGE_RULE, fixtures.TICKET_RULE)
    with fixtures.slow_cursor() as cursor:
        for statement in (_SLIS, _MINUTES, _HOURS):
            cursor.execute(statement, {"first": first, "last": last, "begin": begin})
    return last


def _run_tick(now: datetime) -> TickCost:
    from slo.evaluation import tick

    return measure_tick(lambda: tick.evaluate_due_minutes(now))
