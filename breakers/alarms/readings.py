"""What is measured beside the rules, each kind in one query."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from breakers.alarms.rules import (
    CONCURRENCY,
    FALLBACKS,
    OPEN,
    RETRIES,
    TIMEOUTS,
    WINDOW,
    Reading,
)
from controlplane.core.instances.queries import HEARD_WITHIN

MINUTE = timedelta(minutes=1)

# What an operator forces open has not tripped. The few that are open are found first, by an index
# of their own.
_OPEN = """
    SELECT d.caller || '->' || d.callee,
           count(*) FILTER (WHERE s.state = 'open' AND s.mode <> 'forced_open'), count(*)
    FROM breakers_breakerstate s
    JOIN core_instance i ON i.id = s.instance AND i.boot = s.boot
    JOIN breakers_dependency d ON d.id = s.dependency_id
    WHERE i.reported_at >= %(fresh)s AND d.removed_at IS NULL AND s.dependency_id = ANY(ARRAY(
        SELECT DISTINCT dependency_id FROM breakers_breakerstate WHERE state = 'open'
    ))
    GROUP BY d.id
"""
# A timeout is a failure too; where it is counted apart, there may be more of them than failures.
# Only what is beyond some limit is named: of ten thousand dependencies that is next to none.
_RATES = """
    SELECT d.caller || '->' || d.callee, counted.*
    FROM (
        SELECT dependency_id, sum(success) + sum(greatest(failure, timeout)) AS calls,
               sum(timeout) AS timeouts, sum(retry) AS retries, sum(fallback) AS fallbacks,
               sum(rejected) AS rejected
        FROM breakers_minute WHERE minute > %(since)s AND minute <= %(now)s
        GROUP BY dependency_id
    ) counted
    JOIN breakers_dependency d ON d.id = counted.dependency_id
    WHERE d.removed_at IS NULL AND (
        timeouts > %(timeouts)s * calls OR retries > %(retries)s * calls
        OR fallbacks > %(fallbacks)s * (calls + rejected)
    )
"""
_BULKHEADS = """
    SELECT i.service || '/' || held.key, sum((held.value ->> 'in_flight')::float),
           sum((held.value ->> 'limit')::float), count(*)
    FROM core_instance i, jsonb_each(i.resilience -> 'bulkheads') AS held
    WHERE i.reported_at >= %(fresh)s AND (held.value ->> 'limit')::float > 0
    GROUP BY 1
"""


def measured(now: datetime) -> list[Reading]:
    """Every figure that a rule is about, of what was reported lately; those well within their
    limits may be left out."""
    return [*_open(now), *_rates(now), *_bulkheads(now)]


def _open(now: datetime) -> Iterator[Reading]:
    for name, is_open, instances in _rows(_OPEN, fresh=now - HEARD_WITHIN):
        yield Reading(OPEN, name, is_open, instances, {"open": is_open, "instances": instances})


def _rates(now: datetime) -> Iterator[Reading]:
    limits = {
        "timeouts": TIMEOUTS.limit,
        "retries": RETRIES.limit,
        "fallbacks": FALLBACKS.limit,
    }
    rows = _rows(_RATES, since=now - WINDOW, now=now, **limits)
    for name, _, *sums in rows:
        calls, timeouts, retries, fallbacks, rejected = (int(one) for one in sums)
        evidence = {"calls": calls, "rejected": rejected, "window_seconds": WINDOW.seconds}
        asked = calls + rejected
        for rule, some, all_of_them in (
            (TIMEOUTS, timeouts, calls),
            (RETRIES, retries, calls),
            (FALLBACKS, fallbacks, asked),
        ):
            if all_of_them:
                yield Reading(
                    rule, name, some / all_of_them, all_of_them, {**evidence, "of_them": some}
                )


def _bulkheads(now: datetime) -> Iterator[Reading]:
    for name, in_flight, limit, instances in _rows(_BULKHEADS, fresh=now - HEARD_WITHIN):
        seen: Mapping[str, Any] = {"in_flight": in_flight, "limit": limit, "instances": instances}
        yield Reading(CONCURRENCY, name, in_flight / limit, instances, seen)


def _rows(statement: str, **given: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, given)
        return list(cursor.fetchall())
