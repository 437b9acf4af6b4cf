"""Measures the periodic evaluation of a thousand and of ten thousand SLOs.

The evaluation runs in this process; no other tasks run. CPU time is counted of this process and of
the PostgreSQL process that serves it. A month of history should cost as much as a day, because the
totals of a window are looked up.
"""

import time
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from django.db import connection

from . import fixtures
from .ramps import TickCost, database_cpu

ROUNDS = 5
FEW, MANY = 1_000, 10_000
DAY, MONTH = 1, 30
RECENT_DAYS = 3
"""The last days whose minutes are stored as a row each; older minutes are packed by hour."""

_SLOS = """
    INSERT INTO slo_slo (name, service, kind, target, window_days, source, rules, min_events,
                         actions, description, owner, runbook_url, version, created_at, changed_at)
    SELECT 'bench-' || n, 'bench', 'availability', 0.999, 30, '{"type": "push"}',
           '[{"long": "1h", "short": "5m", "burn_rate": 14, "severity": "page"},
             {"long": "6h", "short": "30m", "burn_rate": 6, "severity": "ticket"}]',
           0, '[]', '', '', '', 1, %(at)s, %(at)s
    FROM generate_series(1, %(count)s) AS n
"""
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

    now = db_now()
    last = _create_history(count, days, now)
    try:
        seen = [_run_tick(end_of(last + n) + EVALUATION_DELAY) for n in range(1, ROUNDS + 2)]
        _expect_known(count)
    finally:
        fixtures.delete_slos()
    costs = seen[1:]  # The first tick warms up, and inserts every row.
    known = [one.database for one in costs if one.database is not None]
    middle = TickCost(
        min(one.moved for one in costs),
        median(one.cpu for one in costs),
        median(known) if known else None,
        median(one.wall for one in costs),
    )
    return EvaluationCosts(count, days, middle)


def _create_history(count: int, days: int, now: datetime) -> int:
    """Create SLOs with a history that ends an hour ago; return its last minute.

    Older hours and minutes are sparse, as that does not change the cost of look-ups.
    """
    from slo.arithmetic.minutes import last_ended

    last = last_ended(now) - 60
    first = (last - days * 24 * 60) // 60 * 60
    begin = max(first, (last - RECENT_DAYS * 24 * 60) // 60 * 60)
    given = {"at": now, "count": count, "first": first, "last": last, "begin": begin}
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
        for statement in (_SLOS, _SLIS, _MINUTES, _HOURS):
            cursor.execute(statement, given)
        cursor.execute("RESET statement_timeout")
    return last


def _run_tick(now: datetime) -> TickCost:
    from slo.evaluation import tick

    database = database_cpu()
    before = database()
    wall, cpu = time.monotonic(), time.process_time()
    judged = tick.evaluate_due_minutes(now)
    cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    return TickCost(judged, cpu, None if before is None else (database() or before) - before, wall)


def _expect_known(count: int) -> None:
    from slo.models import SloStatus

    known = SloStatus.objects.filter(state="ok").count()
    if known != count:
        raise SystemExit(f"bench: {known} of {count} SLOs were judged to be ok")
