"""Series of a dependency's minutes, for charts.

Pure; :func:`.minutes.load_minutes` reads the rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter

from breakers.counts import COUNTERS, BreakerCounts
from controlplane.core.freshness import Freshness, assess_freshness

WORST = ("unknown", "closed", "half_open", "open")
"""States by their number in `Minute.worst`."""
CLOSED, TROUBLED = 1, {"open", "half_open"}
MINUTE = timedelta(minutes=1)
CALLS_CADENCE = 2 * MINUTE
"""Greatest age of the last counted call while there are calls: a minute, and reports in between."""
_COUNTERS_OF = attrgetter(*COUNTERS)


@dataclass(slots=True)
class MinuteRow:
    """A row of :class:`breakers.models.Minute`: the worst state and the calls of a minute."""

    minute: datetime
    worst: int
    success: int
    failure: int
    timeout: int
    slow: int
    rejected: int
    fallback: int
    retry: int


@dataclass(frozen=True)
class Band:
    """A period of `length` minutes with the same breaker state, from the minute `start` on."""

    start: int
    length: int
    state: str

    @property
    def end(self) -> int:
        return self.start + self.length


@dataclass(frozen=True)
class FailureSpark:
    """The failure ratio of each minute, for a sparkline.

    `pieces` are runs of consecutive minutes with calls, as points (minute, ratio 0 to 1);
    `troubled` are the bands with a breaker that was not closed; `worst_share` is the highest ratio,
    None without calls.
    """

    length: int
    pieces: Sequence[Sequence[tuple[int, float]]]
    troubled: Sequence[Band]
    worst_share: float | None

    @property
    def is_empty(self) -> bool:
        return not self.pieces and not self.troubled


def build_spark(minutes: Iterable[MinuteRow], first: datetime, length: int) -> FailureSpark:
    """Return the sparkline of the `length` minutes that begin with the minute `first`.

    `minutes` are in order of time; others are left out.
    """
    pieces: list[list[tuple[int, float]]] = []
    worst: dict[int, int] = {}
    shares = []
    for one in minutes:
        place = (one.minute - first) // MINUTE
        if not 0 <= place < length:
            continue
        worst[place] = one.worst
        failed = one.failure + one.timeout
        if calls := one.success + failed:
            if not pieces or pieces[-1][-1][0] < place - 1:
                pieces.append([])
            pieces[-1].append((place, failed / calls))
            shares.append(failed / calls)
    bands = _build_bands(worst, length) if max(worst.values(), default=0) > CLOSED else []
    troubled = [band for band in bands if band.state in TROUBLED]
    return FailureSpark(length, pieces, troubled, max(shares, default=None))


def build_bands(
    minutes: Iterable[MinuteRow], first: datetime, length: int, *, present: str = "unknown"
) -> list[Band]:
    """Return bands of the worst breaker state for the `length` minutes that begin with `first`.

    The last minute is at least as bad as the `present` state, which is reported before its minute.
    """
    worst = {(one.minute - first) // MINUTE: one.worst for one in minutes}
    worst[length - 1] = max(worst.get(length - 1, 0), WORST.index(present))
    return _build_bands(worst, length)


def _build_bands(worst: Mapping[int, int], length: int) -> list[Band]:
    numbers = (worst.get(place, 0) for place in range(length))
    return _join_bands((n if 0 <= n < len(WORST) else 0 for n in numbers), 1)


def coarsen_bands(found: Sequence[Band], step: int) -> list[Band]:
    """Return the bands rounded to steps of `step` minutes; a step has the worst state within it."""
    worst = [0 for _ in range(0, found[-1].end if found else 0, step)]
    for band in found:
        for place in range(band.start // step, (band.end - 1) // step + 1):
            worst[place] = max(worst[place], WORST.index(band.state))
    return _join_bands(worst, step)


def _join_bands(worst: Iterable[int], step: int) -> list[Band]:
    """Return a band per run of equal states in `worst`, which has one for every `step` minutes."""
    found: list[Band] = []
    start = 0
    for number, run in groupby(worst):
        length = step * len(list(run))
        found.append(Band(start, length, WORST[number]))
        start += length
    return found


def sum_counts(minutes: Iterable[MinuteRow]) -> BreakerCounts:
    return BreakerCounts(*map(sum, zip(*map(_COUNTERS_OF, minutes), strict=True)))


def find_last_counted(minutes: Iterable[MinuteRow]) -> datetime | None:
    """Return the last minute with counted calls; None if there is none."""
    return max((one.minute for one in minutes if any(_COUNTERS_OF(one))), default=None)


def assess_failures(minutes: Iterable[MinuteRow], now: datetime) -> Freshness:
    """Return the freshness of breakers' failure rates, whose windows stand still without calls.

    They were true at the last call in `minutes`, which is known to the minute; never if there is
    none.
    """
    called = (one.minute for one in minutes if one.success or one.failure or one.timeout)
    last = max(called, default=None)
    return assess_freshness(last and min(now, last + MINUTE), CALLS_CADENCE, now)
