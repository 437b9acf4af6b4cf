"""Series of allowed and blocked checks per switch, from the counts by the minute and by the hour.

A span without reported checks is unknown (None), not zero.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from controlplane.core.sql import fetch_all

MINUTE_SECONDS, HOUR_SECONDS = 60, 3600
MAX_BUCKETS = 180
STEPS = (60, 120, 300, 600, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 24 * 3600)
"""Possible lengths of a bucket in seconds; from an hour on, counts by the hour are read."""
REPORT_DELAY = timedelta(seconds=45)
"""Time after which the checks of a minute have been reported and written."""
SPARK_SECONDS, SPARK_STEP = 3600, 120

_SUMS = """
    SELECT switch, start - start %% %(step)s, sum(allowed)::bigint, sum(blocked)::bigint
    FROM core_checkcount
    WHERE switch = ANY(%(switches)s) AND seconds = %(seconds)s
      AND start >= %(first)s AND start < %(last)s
    GROUP BY 1, 2
"""


@dataclass(frozen=True)
class CheckBucket:
    """The checks of a switch in `seconds` from `start` (Unix seconds); None if none was reported.

    The last bucket of a series is shorter than the others if the series ends within it.
    """

    start: int
    seconds: int
    allowed: int | None = None
    blocked: int | None = None

    @property
    def total(self) -> int | None:
        if self.allowed is None or self.blocked is None:
            return None
        return self.allowed + self.blocked

    def per_minute(self, count: int | None) -> float:
        return 0.0 if count is None else count * MINUTE_SECONDS / self.seconds


@dataclass(frozen=True)
class CheckSeries:
    """The checks of a switch from `first` until `last` (Unix seconds), in buckets of `step`."""

    first: int
    last: int
    step: int
    buckets: Sequence[CheckBucket]

    @property
    def allowed(self) -> int:
        return sum(bucket.allowed or 0 for bucket in self.buckets)

    @property
    def blocked(self) -> int:
        return sum(bucket.blocked or 0 for bucket in self.buckets)

    @property
    def total(self) -> int:
        return self.allowed + self.blocked

    @property
    def is_empty(self) -> bool:
        return all(bucket.total is None for bucket in self.buckets)


def counted_until(now: datetime) -> int:
    """Return the end of the last minute whose checks have been written, in Unix seconds."""
    at = int((now - REPORT_DELAY).timestamp())
    return at - at % MINUTE_SECONDS


def choose_step(seconds: int) -> int:
    """Return the shortest step that covers a span with at most `MAX_BUCKETS` buckets."""
    return next((step for step in STEPS if seconds <= step * MAX_BUCKETS), STEPS[-1])


def build_series(
    sums: Mapping[int, tuple[int, int]], first: int, last: int, step: int
) -> CheckSeries:
    """Return the series of (allowed, blocked) by the start of each bucket, with its gaps.

    `first` is rounded down to a multiple of `step`.
    """
    first -= first % step
    buckets = (
        CheckBucket(start, min(step, last - start), *sums.get(start, (None, None)))
        for start in range(first, last, step)
    )
    return CheckSeries(first, last, step, tuple(buckets))


def coarsen_buckets(series: CheckSeries, most: int) -> list[CheckBucket]:
    """Return the buckets joined to at most `most`, the newest first, for a table."""
    size = max(1, -(-len(series.buckets) // most))
    parts = (series.buckets[n : n + size] for n in range(0, len(series.buckets), size))
    return [_join_buckets(part) for part in parts][::-1]


def _join_buckets(part: Sequence[CheckBucket]) -> CheckBucket:
    known = [one for one in part if one.total is not None]
    seconds = sum(one.seconds for one in part)
    if not known:
        return CheckBucket(part[0].start, seconds)
    allowed, blocked = (sum(getattr(one, name) or 0 for one in known) for name in _NAMES)
    return CheckBucket(part[0].start, seconds, allowed, blocked)


_NAMES = ("allowed", "blocked")


def load_series(switch: str, seconds: int, now: datetime) -> CheckSeries:
    """Return the checks of a switch in the last `seconds`, up to the last complete minute."""
    last, step = counted_until(now), choose_step(seconds)
    first = last - seconds
    sums = _load_sums([switch], first - first % step, last, step)
    return build_series(sums[switch], first, last, step)


def load_recent_series(switches: Iterable[str], now: datetime) -> dict[str, CheckSeries]:
    """Return the checks of each switch in the last hour, for sparklines; one query."""
    ids, last = list(switches), counted_until(now)
    first = last - SPARK_SECONDS
    first -= first % SPARK_STEP
    sums = _load_sums(ids, first, last, SPARK_STEP)
    return {switch: build_series(sums[switch], first, last, SPARK_STEP) for switch in ids}


def _load_sums(
    switches: list[str], first: int, last: int, step: int
) -> Mapping[str, dict[int, tuple[int, int]]]:
    parameters = {
        "switches": switches,
        "seconds": HOUR_SECONDS if step >= HOUR_SECONDS else MINUTE_SECONDS,
        "first": first,
        "last": last,
        "step": step,
    }
    found: dict[str, dict[int, tuple[int, int]]] = defaultdict(dict)
    for switch, start, allowed, blocked in fetch_all(_SUMS, parameters) if switches else ():
        found[switch][start] = allowed, blocked
    return found
