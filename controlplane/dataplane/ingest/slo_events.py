"""Events of SLOs, counted by services and cumulative per boot: what each report adds. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

MAX_SLOS = 200
"""Counted per boot; the first ones stay, because one that came back would be counted twice."""

Counts = Mapping[str, Sequence[int]]
"""SLO → good, total; as they stand since the boot."""


class Events(NamedTuple):
    """Events that an instance counted in a span: `good` of `total`, which is more than none.

    `services` are those that the token is limited to, none if it has no limit.
    """

    slo: str
    instance: str
    began_at: datetime
    ended_at: datetime
    good: int
    total: int
    services: Sequence[str] = ()


def kept(before: Counts, counts: Counts) -> dict[str, list[int]]:
    """What stands after a report of `counts`; those that it leaves out are as they were."""
    result = {slo: list(numbers) for slo, numbers in before.items()}
    for slo, numbers in counts.items():
        if slo in result or len(result) < MAX_SLOS:
            result[slo] = list(numbers)
    return result


def grown(before: Counts, after: Counts) -> Iterator[tuple[str, int, int]]:
    """SLO, good, total: by how much each has grown.

    Where any counter went down, also that of bad events, nobody knows what was counted: nothing.
    """
    for slo, (good, total) in after.items():
        good_before, total_before = before.get(slo, (0, 0))
        more_good, more = good - good_before, total - total_before
        if more > 0 and 0 <= more_good <= more:
            yield slo, more_good, more
