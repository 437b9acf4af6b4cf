"""Shares of a dependency's calls: timeouts, retries, fallbacks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from breakers import message_facts, names
from breakers.sql import fetch_all
from controlplane.core.durations import readable
from controlplane.core.threshold_metrics import (
    COMPARISONS,
    MetricQuery,
    MetricReading,
    count,
    percent,
)

# Calls, wishes and shares as `breakers.counts` says. Only what is beyond the limit is named, and
# what had been: of ten thousand dependencies that is next to none.
_RATES = """
    SELECT caller, callee, owner, runbook_url, counted, base, calls, rejected FROM (
        SELECT d.caller, d.callee, d.owner, d.runbook_url, {some} AS counted, {whole} AS base,
               calls, rejected
        FROM (
            SELECT dependency_id, sum(timeout) AS timeout, sum(rejected) AS rejected,
                   sum(fallback) AS fallback, sum(retry) AS retry,
                   sum(success) + sum(failure) + sum(timeout) AS calls
            FROM breakers_minute WHERE minute > %(since)s AND minute <= %(now)s
            GROUP BY dependency_id
        ) sums
        JOIN breakers_dependency d ON d.id = sums.dependency_id
        WHERE d.removed_at IS NULL
    ) share
    WHERE base > 0 AND (
        counted {comparison} %(limit)s * base OR caller || %(arrow)s || callee = ANY(%(standing)s)
    )
    ORDER BY caller, callee
"""


@dataclass(frozen=True)
class RateMeasure:
    """The share `some` of `whole`, both SQL over the sums of counters.

    `did` describes the counted calls, and `to_do` is the advice.
    """

    some: str
    whole: str
    did: str
    to_do: str

    def read(self, asked: MetricQuery, now: datetime) -> Iterator[MetricReading]:
        """Yield the share in the window by dependency."""
        comparison = COMPARISONS[COMPARISONS.index(asked.comparison)]
        statement = _RATES.format(some=self.some, whole=self.whole, comparison=comparison)
        given: dict[str, Any] = {
            "since": now - asked.window,
            "now": now,
            "limit": asked.exact_limit,
            "arrow": names.ARROW,
            "standing": [*asked.standing],
        }
        for caller, callee, owner, runbook, *sums in fetch_all(statement, given):
            yield self._reading(asked, (caller, callee), (owner, runbook), *map(int, sums))

    def _reading(
        self,
        asked: MetricQuery,
        pair: tuple[str, str],
        about: tuple[str, str],
        some: int,
        whole: int,
        calls: int,
        rejected: int,
    ) -> MetricReading:
        name = names.dependency_name(*pair)
        owner, runbook = about
        return MetricReading(
            subject=name,
            value=some / whole,
            beyond=asked.beyond(some, whole),
            samples=whole,
            said=f"{percent(some / whole)} of the calls of {name} {self.did} in "
            f"{readable(asked.window)} ({asked.allowed(percent)}; {count(whole)} calls)",
            path=message_facts.dependency_path(*pair),
            service=pair[0],
            evidence={
                "calls": calls,
                "rejected": rejected,
                "window_seconds": asked.window.seconds + asked.window.days * 86_400,
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


Read = Callable[[MetricQuery, datetime], Iterator[MetricReading]]

timeouts: Read = RateMeasure(
    some="timeout",
    whole="calls",
    did="timed out",
    to_do="See whether its callee is slow, or the timeout too short.",
).read
retries: Read = RateMeasure(
    some="retry",
    whole="calls",
    did="were repeats",
    to_do="See what fails at first: retries hide it, and multiply the load.",
).read
fallbacks: Read = RateMeasure(
    some="fallback",
    whole="greatest(greatest(calls - retry, 0) + rejected, fallback)",
    did="fell back",
    to_do="See why: users get less than they asked for.",
).read
