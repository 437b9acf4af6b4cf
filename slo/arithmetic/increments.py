"""From samples of counters to what was counted in each minute.

Times are whole microseconds since 1970. Counts are floats that are exact: whole numbers up to 2^53,
others in 1024ths, so that sums don't depend on the order in which they are made.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

MICROSECOND = timedelta(microseconds=1)
MINUTE = 60_000_000
MAX_STEP = 2 * MINUTE
"""Two samples that are further apart say nothing of when in between their difference came."""
MAX_MINUTES = 100 * 24 * 60
"""Over so many minutes, its last ones, a step is spread one by one; what is older by the hour."""
MAX_HOUR_MINUTES = 366 * 24 * 60
"""What is older than so many minutes is of no period: it is put together before them."""
FRACTION_PARTS = 1024
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Sample(NamedTuple):
    """What counters that only grow said at a moment."""

    at: int
    good: float
    total: float


class Increment(NamedTuple):
    """`good` of `total` events came after `began`, up to `ended`."""

    began: int
    ended: int
    good: float
    total: float


def to_micros(moment: datetime) -> int:
    """A moment (aware) in microseconds since 1970."""
    return (moment - _EPOCH) // MICROSECOND


def from_micros(at: int) -> datetime:
    """The other way round, in UTC."""
    return _EPOCH + at * MICROSECOND


def minute_of(at: int) -> int:
    """The minute that a moment lies in; its end belongs to it."""
    return -(-at // MINUTE)


def round_count(value: float) -> float:
    """A count as it is kept."""
    return float(value) if value == int(value) else round(value * FRACTION_PARTS) / FRACTION_PARTS


def increment_between(before: Sample, after: Sample) -> Increment:
    """By how much counters grew from one sample to the next. Where one of them went down, also that
    of bad events, they began again at zero in between."""
    good, total = after.good - before.good, after.total - before.total
    if good < 0 or total < 0 or good > total:
        good, total = after.good, after.total
    return Increment(before.at, after.at, good, total)


def increment_from_zero(since: int, first: Sample) -> Increment:
    """What the first sample of a series says that began at zero at some time."""
    return Increment(min(since, first.at), first.at, first.good, first.total)


def split_by_minute(growth: Increment) -> Iterator[tuple[int, float, float]]:
    """Minute, good, total: where the growth of a step belongs; its last minute is always named.

    That of a short step came with its last sample. That of a long one is spread evenly, good and
    bad events each rounded down to whole ones (if they are whole) until the last minute.
    """
    began, ended, good, total = growth
    last = minute_of(ended)
    if ended - began <= MAX_STEP:
        yield last, good, total
        return
    parts = 1 if good == int(good) and total == int(total) else FRACTION_PARTS
    all_good, all_bad = int(good * parts), int((total - good) * parts)
    length = ended - began
    put_good = put_bad = 0
    for minute in _spread(began // MINUTE + 1, last):
        elapsed = minute * MINUTE - began
        now_good, now_bad = all_good * elapsed // length, all_bad * elapsed // length
        if now_good != put_good or now_bad != put_bad:
            more_good, more_bad = now_good - put_good, now_bad - put_bad
            yield minute, more_good / parts, (more_good + more_bad) / parts
            put_good, put_bad = now_good, now_bad
    rest_good, rest_bad = all_good - put_good, all_bad - put_bad
    yield last, rest_good / parts, (rest_good + rest_bad) / parts


def _spread(first: int, last: int) -> Iterator[int]:
    """The minutes before the last one by which some of a long step came."""
    near = max(first, last - MAX_MINUTES)
    hour = -(-max(first, last - MAX_HOUR_MINUTES) // 60) * 60
    yield from range(hour, near, 60)
    yield from range(near, last)


def covered_minutes(began: int, ended: int) -> range:
    """The minutes that the span between two samples tells of: none if it is a long one."""
    if not 0 < ended - began <= MAX_STEP:
        return range(0)
    return range(began // MINUTE + 1, minute_of(ended) + 1)
