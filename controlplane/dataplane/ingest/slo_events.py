"""SLO events counted by services, cumulative per boot: increments per report. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

MAX_SLOS = 200
"""Most SLOs per boot; the first ones stay, because a returning one would be counted twice."""

SloCounts = Mapping[str, Sequence[int]]
"""SLO → (good, total), cumulative since the boot."""


class Events(NamedTuple):
    """Events that an instance counted in a span: `good` of `total`, which is at least 1.

    `services` are those that the token is limited to; empty without a limit.
    """

    slo: str
    instance: str
    began_at: datetime
    ended_at: datetime
    good: int
    total: int
    services: Sequence[str] = ()


def merge_counts(before: SloCounts, counts: SloCounts) -> dict[str, list[int]]:
    """Return the counts after a report; SLOs that it leaves out are unchanged."""
    result = {slo: list(numbers) for slo, numbers in before.items()}
    for slo, numbers in counts.items():
        if slo in result or len(result) < MAX_SLOS:
            result[slo] = list(numbers)
    return result


def find_growth(before: SloCounts, after: SloCounts) -> Iterator[tuple[str, int, int]]:
    """Yield SLO, good and total: the increments from `before` to `after`.

    If any counter decreased, including that of bad events, the SLO is skipped.
    """
    for slo, (good, total) in after.items():
        good_before, total_before = before.get(slo, (0, 0))
        more_good, more = good - good_before, total - total_before
        if more > 0 and 0 <= more_good <= more:
            yield slo, more_good, more
