"""Threshold metrics that are ratios: of timeouts, retries, fallbacks, and bulkhead load."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from breakers import message_facts, names
from controlplane.core.durations import format_readable
from controlplane.core.freshness import INSTANCE_CADENCE
from controlplane.core.instances.exports import INSTANCES, NO_FINAL_REPORT
from controlplane.core.sql import fetch_all
from controlplane.core.threshold_metrics import (
    COMPARISONS,
    MetricQuery,
    MetricReading,
    format_count,
    format_percent,
)

from .stopped import read_stopped

_SUMS = """
    sum(timeout) AS timeout, sum(rejected) AS rejected, sum(fallback) AS fallback,
    sum(retry) AS retry, sum(success) + sum(failure) + sum(timeout) AS calls
"""
# Only dependencies beyond the limit, or with an open alert, are returned: few of many thousands.
# Once calls end, a share may rise merely because earlier ones leave the window; so it must also be
# beyond the limit in the window that ends with the last calls.
_RATES = f"""
    SELECT caller, callee, owner, runbook_url, counted, base, calls, rejected FROM (
        SELECT d.*, {{some}} AS counted, {{whole}} AS base, calls, rejected, latest
        FROM (
            SELECT dependency_id, {_SUMS}, max(minute) FILTER (
                WHERE success + failure + timeout + rejected + fallback + retry > 0
            ) AS latest
            FROM breakers_minute WHERE minute > %(now)s - %(window)s AND minute <= %(now)s
            GROUP BY dependency_id
        ) sums
        JOIN breakers_dependency d ON d.id = sums.dependency_id
        WHERE d.removed_at IS NULL
    ) share
    WHERE base > 0 AND (
        caller || %(arrow)s || callee = ANY(%(standing)s)
        OR counted {{comparison}} %(limit)s * base AND EXISTS (
            SELECT FROM (
                SELECT {_SUMS} FROM breakers_minute
                WHERE dependency_id = share.id AND minute > latest - %(window)s
                  AND minute <= latest
            ) last_window
            WHERE {{some}} {{comparison}} %(limit)s * {{whole}}
        )
    )
    ORDER BY caller, callee
"""  # noqa: S608


@dataclass(frozen=True)
class RateMeasure:
    """A threshold metric: the ratio of the counter `name` to `whole`, an SQL sum of counters.

    `about` describes the metric. Messages contain `did`, a verb for the counted calls (`timed
    out`), and the advice `to_do`.
    """

    name: str
    about: str
    whole: str
    did: str
    to_do: str

    def read(self, query: MetricQuery, now: datetime) -> Iterator[MetricReading]:
        """Yield the ratio of each dependency that is beyond the limit or has an open alert."""
        comparison = COMPARISONS[COMPARISONS.index(query.comparison)]
        statement = _RATES.format(some=self.name, whole=self.whole, comparison=comparison)
        values: dict[str, Any] = {
            "window": query.window,
            "now": now,
            "limit": query.exact_limit,
            "arrow": names.ARROW,
            "standing": [*query.standing],
        }
        rows = fetch_all(statement, values)
        beyond = {names.dependency_name(caller, callee) for caller, callee, *_ in rows}
        stopped = read_stopped({*query.standing, *beyond}, now)
        yield from stopped.values()
        for caller, callee, owner, runbook, *sums in rows:
            some, whole, calls, rejected = map(int, sums)
            name = names.dependency_name(caller, callee)
            if name in stopped:
                continue
            yield MetricReading(
                subject=name,
                value=some / whole,
                beyond=query.beyond(some, whole),
                samples=whole,
                summary=f"{format_percent(some / whole)} of the calls of {names.format_name(name)} "
                f"{self.did} in "
                f"{format_readable(query.window)} ({query.allowed(format_percent)};"
                f" {format_count(whole)} calls)",
                path=message_facts.dependency_path(caller, callee),
                service=caller,
                evidence={
                    "calls": calls,
                    "rejected": rejected,
                    "window_seconds": query.window // timedelta(seconds=1),
                    "of_them": some,
                },
                thread=message_facts.build_thread("dependency", name),
                facts={
                    "dependency": name,
                    "owner": owner or None,
                    "runbook": runbook or None,
                    "to_do": self.to_do,
                },
            )


TIMEOUTS = RateMeasure(
    name="timeout",
    about="Share of a dependency's calls that timed out.",
    whole="calls",
    did="timed out",
    to_do="Check whether the callee is slow or the timeout too short.",
)
RETRIES = RateMeasure(
    name="retry",
    about="Share of a dependency's calls that were retries.",
    whole="calls",
    did="were retries",
    to_do="Find what fails at the first attempt: retries hide it and add load.",
)
FALLBACKS = RateMeasure(
    name="fallback",
    about="Share of a dependency's calls answered by its fallback.",
    whole="greatest(greatest(calls - retry, 0) + rejected, fallback)",
    did="fell back",
    to_do="Find the cause: users get reduced answers.",
)

MAX_SUBJECT_LENGTH = 250
_BULKHEADS = f"""
    SELECT i.service, i.service || '/' || held.key, sum((held.value ->> 'in_flight')::float),
           sum((held.value ->> 'limit')::float), count(*)
    FROM {INSTANCES}, jsonb_each(i.resilience -> 'bulkheads') AS held
    WHERE i.reported_at >= %(fresh)s AND {NO_FINAL_REPORT} AND (held.value ->> 'limit')::float > 0
    GROUP BY 1, 2 ORDER BY 2
"""  # noqa: S608


def read_concurrency(query: MetricQuery, now: datetime) -> Iterator[MetricReading]:
    """Yield the load of each bulkhead: its calls in flight divided by its limit."""
    for service, name, in_flight, limit, instances in fetch_all(
        _BULKHEADS, {"fresh": now - INSTANCE_CADENCE}
    ):
        subject = message_facts.shorten_with_digest(name, MAX_SUBJECT_LENGTH)
        yield MetricReading(
            subject=subject,
            value=in_flight / limit,
            beyond=query.beyond(in_flight, limit),
            samples=instances,
            summary=f"The bulkhead {subject} is {format_percent(in_flight / limit)} full "
            f"({query.allowed(format_percent)}; {format_count(instances)} "
            f"instance{'' if instances == 1 else 's'})",
            path=message_facts.BOARD_PATH,
            service=service,
            evidence={"in_flight": in_flight, "limit": limit, "instances": instances},
            thread=message_facts.build_thread("bulkhead", subject),
            facts={"to_do": "Find out what takes so long, or raise the limit."},
        )
