"""Samples of cumulative counters, and their increments by minute. Pure.

Times are whole microseconds since 1970. Counts are exact floats (integers up to 2^53, others in
1024ths), so that sums do not depend on their order.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import NamedTuple

MICROSECOND = timedelta(microseconds=1)
MINUTE = 60_000_000
MAX_STEP = 2 * MINUTE
"""Longest duration, in microseconds, of an increment that counts wholly in its last minute."""
MAX_MINUTES = 100 * 24 * 60
"""A longer increment is spread over each minute of its last 100 days; before, over each hour."""
MAX_HOUR_MINUTES = 366 * 24 * 60
"""An increment is spread over at most its last 366 days, which cover the longest SLO period."""
FRACTION_PARTS = 1024
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Sample(NamedTuple):
    """The value of cumulative counters at a moment."""

    at: int
    good: float
    total: float


class Increment(NamedTuple):
    """`good` of `total` events, counted after `began` and up to `ended`."""

    began: int
    ended: int
    good: float
    total: float


def to_micros(moment: datetime) -> int:
    return (moment - _EPOCH) // MICROSECOND


def minute_of(at: int) -> int:
    """Return the minute of a time; the end of a minute belongs to that minute."""
    return -(-at // MINUTE)


def round_count(value: float) -> float:
    """Return a count at the stored precision: an integer, or a multiple of 1/1024."""
    return float(value) if value == int(value) else round(value * FRACTION_PARTS) / FRACTION_PARTS


def increment_between(before: Sample, after: Sample) -> Increment:
    """Return the increment from one sample to the next.

    If the good, bad or total count decreased, the counters restarted at zero in between, and the
    increment is the whole later sample.
    """
    good, total = after.good - before.good, after.total - before.total
    if good < 0 or total < 0 or good > total:
        good, total = after.good, after.total
    return Increment(before.at, after.at, good, total)


def split_by_minute(increment: Increment) -> Iterator[tuple[int, float, float]]:
    """Split an increment into events per minute: yield (minute, good, total) for each part.

    All events of an increment of at most `MAX_STEP` are put in its last minute. A longer one is
    spread evenly in whole counts; the rest goes to the last minute, which is always yielded.
    """
    began, ended, good, total = increment
    last = minute_of(ended)
    if ended - began <= MAX_STEP:
        yield last, good, total
        return
    parts = 1 if good == int(good) and total == int(total) else FRACTION_PARTS
    all_good, all_bad = int(good * parts), int((total - good) * parts)
    length = ended - began
    put_good = put_bad = 0
    first = began // MINUTE + 1
    near = max(first, last - MAX_MINUTES)
    hour = -(-max(first, last - MAX_HOUR_MINUTES) // 60) * 60
    for minute in chain(range(hour, near, 60), range(near, last)):
        elapsed = minute * MINUTE - began
        now_good, now_bad = all_good * elapsed // length, all_bad * elapsed // length
        if now_good != put_good or now_bad != put_bad:
            more_good, more_bad = now_good - put_good, now_bad - put_bad
            yield minute, more_good / parts, (more_good + more_bad) / parts
            put_good, put_bad = now_good, now_bad
    rest_good, rest_bad = all_good - put_good, all_bad - put_bad
    yield last, rest_good / parts, (rest_good + rest_bad) / parts


def covered_minutes(began: int, ended: int) -> range:
    """Return the minutes that two successive samples cover: none if over `MAX_STEP` apart."""
    if not 0 < ended - began <= MAX_STEP:
        return range(0)
    return range(began // MINUTE + 1, minute_of(ended) + 1)


@dataclass
class MinuteIncrements:
    """Increments of an SLI by minute, collected before they are written.

    `counts` are `[good, total]` by minute; `covered` are the minutes covered by samples. Minutes in
    either get a row.
    """

    counts: dict[int, list[float]] = field(default_factory=dict)
    covered: set[int] = field(default_factory=set)

    def add(self, increments: Iterable[Increment], sign: int = 1) -> None:
        for increment in increments:
            for minute, good, total in split_by_minute(increment):
                self.add_counts(minute, sign * good, sign * total)

    def add_counts(self, minute: int, good: float, total: float) -> None:
        minute_counts = self.counts.get(minute)
        if minute_counts is None:
            self.counts[minute] = [good, total]
        else:
            minute_counts[0] += good
            minute_counts[1] += total

    def cover(self, spans: Iterable[tuple[int, int]]) -> None:
        for began, ended in spans:
            self.covered.update(covered_minutes(began, ended))

    def minutes(self) -> list[int]:
        return sorted(self.covered.union(self.counts))
