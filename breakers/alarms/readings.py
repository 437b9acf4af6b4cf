"""What is measured beside the rules, each kind in one query or two."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from breakers import telling
from breakers.alarms.rules import (
    CONCURRENCY,
    FALLBACKS,
    OPEN,
    RETRIES,
    TIMEOUTS,
    WINDOW,
    Reading,
)
from breakers.counts import COUNTERS, Counts
from breakers.states import troubled
from breakers.states.troubled import Troubled
from controlplane.core.instances.queries import HEARD_WITHIN

LATELY = timedelta(minutes=1)
LONGEST_SUBJECT = 250

# A breaker that opened and closed again between two looks. One that is told of much later says
# nothing of now, and one upon which a mode is forced has not tripped.
_OPENED = """
    SELECT t.dependency_id, d.caller || '->' || d.callee, count(DISTINCT t.instance)
    FROM breakers_transition t
    JOIN breakers_dependency d ON d.id = t.dependency_id
    LEFT JOIN breakers_breakerstate s ON s.dependency_id = t.dependency_id
        AND s.instance = t.instance AND s.boot = t.boot
    WHERE t.received_at > %(since)s AND t.at > %(recent)s AND t.to_state = 'open'
      AND d.removed_at IS NULL AND coalesce(s.mode, 'normal') = 'normal'
    GROUP BY t.dependency_id, d.id
"""
# Calls, wishes and shares as `breakers.counts` says. Only what is beyond some limit is named: of
# ten thousand dependencies that is next to none.
_RATES = """
    SELECT d.caller || '->' || d.callee, success, failure, timeout, slow, rejected, fallback, retry
    FROM (
        SELECT dependency_id, sum(success) AS success, sum(failure) AS failure,
               sum(timeout) AS timeout, sum(slow) AS slow, sum(rejected) AS rejected,
               sum(fallback) AS fallback, sum(retry) AS retry,
               sum(success) + sum(failure) + sum(timeout) AS calls
        FROM breakers_minute WHERE minute > %(since)s AND minute <= %(now)s
        GROUP BY dependency_id
    ) counted
    JOIN breakers_dependency d ON d.id = counted.dependency_id
    WHERE d.removed_at IS NULL AND (
        timeout > %(timeouts)s * calls OR retry > %(retries)s * calls
        OR fallback > %(fallbacks)s * (greatest(calls - retry, 0) + rejected)
    )
"""
_BULKHEADS = """
    SELECT i.service || '/' || held.key, sum((held.value ->> 'in_flight')::float),
           sum((held.value ->> 'limit')::float), count(*)
    FROM core_instance i, jsonb_each(i.resilience -> 'bulkheads') AS held
    WHERE i.reported_at >= %(fresh)s AND (held.value ->> 'limit')::float > 0
    GROUP BY 1
"""


def measured(now: datetime, *, since: datetime | None = None) -> list[Reading]:
    """Every figure that a rule is about, of what was reported lately; those well within their
    limits may be left out. Breakers that opened for a moment are those since `since`."""
    return [*_open(now, since or now - LATELY), *_rates(now), *_bulkheads(now)]


def _open(now: datetime, since: datetime) -> Iterator[Reading]:
    rows = _rows(_OPENED, since=since, recent=now - WINDOW)
    opened = {pk: (name, instances) for pk, name, instances in rows}
    stand = troubled.look(now, also=opened)
    for pk, (name, instances) in opened.items():
        if pk not in stand or not stand[pk].open:
            fleet = max(stand[pk].instances if pk in stand else 0, instances)
            yield _short(name, instances, fleet)
    for one in stand.values():
        if one.open:
            seen = {"open": one.open, "instances": one.instances}
            yield Reading(OPEN, one.name, one.open, one.instances, seen)
        elif one.is_unheard and one.id not in opened:
            yield _unheard(one)


def _short(name: str, tripped: int, instances: int) -> Reading:
    text = f"The breaker of {name} opened for a moment, in {tripped:,} of {instances:,} instances"
    seen = {"tripped": tripped, "instances": instances}
    return Reading(OPEN, name, tripped, instances, seen, text=text)


def _unheard(one: Troubled) -> Reading:
    seen = {"open": one.silent_open, "instances": one.silent, "heard": False}
    return Reading(OPEN, one.name, one.silent_open, one.silent, seen, is_fresh=False)


def _rates(now: datetime) -> Iterator[Reading]:
    limits = {
        "timeouts": TIMEOUTS.limit,
        "retries": RETRIES.limit,
        "fallbacks": FALLBACKS.limit,
    }
    for name, *sums in _rows(_RATES, since=now - WINDOW, now=now, **limits):
        counts = Counts(**dict(zip(COUNTERS, map(int, sums), strict=True)))
        evidence = {
            "calls": counts.calls,
            "rejected": counts.rejected,
            "window_seconds": WINDOW.seconds,
        }
        for rule, share, some, samples in (
            (TIMEOUTS, counts.timeout_share, counts.timeout, counts.calls),
            (RETRIES, counts.retry_share, counts.retry, counts.calls),
            (FALLBACKS, counts.fallback_share, counts.fallback, counts.asked),
        ):
            if share is not None:
                yield Reading(rule, name, share, samples, {**evidence, "of_them": some})


def _bulkheads(now: datetime) -> Iterator[Reading]:
    for name, in_flight, limit, instances in _rows(_BULKHEADS, fresh=now - HEARD_WITHIN):
        seen: Mapping[str, Any] = {"in_flight": in_flight, "limit": limit, "instances": instances}
        subject = telling.cut(name, LONGEST_SUBJECT)
        yield Reading(CONCURRENCY, subject, in_flight / limit, instances, seen)


def _rows(statement: str, **given: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, given)
        return list(cursor.fetchall())
