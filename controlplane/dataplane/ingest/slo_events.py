"""SLO counts in reports, cumulative since the boot, and their increments. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

MAX_SLOS = 200
"""Most SLOs per boot. Further SLOs are ignored: replacing a stored SLO could count it twice."""

SloCounts = Mapping[str, Sequence[int]]
"""SLO → (good, total), cumulative since the boot."""


class Events(NamedTuple):
    """SLO events that an instance counted from `began_at` to `ended_at`; `total` is at least 1.

    `services` are the services that the token is limited to; empty if it is not limited.
    """

    slo: str
    instance: str
    began_at: datetime
    ended_at: datetime
    good: int
    total: int
    services: Sequence[str] = ()


def merge_counts(before: SloCounts, counts: SloCounts) -> dict[str, list[int]]:
    """Return the stored counts, updated by a report's counts."""
    result = {slo: list(numbers) for slo, numbers in before.items()}
    for slo, numbers in counts.items():
        if slo in result or len(result) < MAX_SLOS:
            result[slo] = list(numbers)
    return result


def find_growth(before: SloCounts, after: SloCounts) -> Iterator[tuple[str, int, int]]:
    """Yield (SLO, good, total) increments, except for SLOs with a decreased counter."""
    for slo, (good, total) in after.items():
        good_before, total_before = before.get(slo, (0, 0))
        more_good, more = good - good_before, total - total_before
        if more > 0 and 0 <= more_good <= more:
            yield slo, more_good, more
