"""Series of a dependency's minutes, for charts.

Pure. A minute is a row of :class:`breakers.models.Minute`, or any object with its fields.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from breakers.counts import COUNTERS, BreakerCounts

WORST = ("unknown", "closed", "half_open", "open")
"""States by their number in `Minute.worst`."""
MINUTE = timedelta(minutes=1)


class MinuteCounts(Protocol):
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
    """A period of `length` minutes in one state, from minute `start` on."""

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


def build_spark(minutes: Iterable[MinuteCounts], first: datetime, length: int) -> FailureSpark:
    """Return the sparkline of `length` minutes from `first` on."""
    pieces: list[list[tuple[int, float]]] = []
    found = {_minute_index(one, first): one for one in minutes}
    for place in range(length):
        one = found.get(place)
        share = None if one is None else sum_counts([one]).failure_share
        if share is None:
            continue
        if pieces and pieces[-1][-1][0] == place - 1:
            pieces[-1].append((place, share))
        else:
            pieces.append([(place, share)])
    shares = [share for piece in pieces for _, share in piece]
    troubled = [
        band
        for band in build_bands(found.values(), first, length)
        if band.state in {"open", "half_open"}
    ]
    return FailureSpark(length, pieces, troubled, max(shares, default=None))


def build_bands(minutes: Iterable[MinuteCounts], first: datetime, length: int) -> list[Band]:
    """Return the worst state of each minute, with neighbors of equal state joined."""
    worst = {_minute_index(one, first): one.worst for one in minutes}
    found: list[Band] = []
    for place in range(length):
        number = worst.get(place, 0)
        state = WORST[number] if 0 <= number < len(WORST) else WORST[0]
        if found and found[-1].state == state:
            found[-1] = Band(found[-1].start, found[-1].length + 1, state)
        else:
            found.append(Band(place, 1, state))
    return found


def coarsen_bands(found: Sequence[Band], step: int) -> list[Band]:
    """Return bands of at least `step` minutes, with the worst state of each step."""
    pieces: list[Band] = []
    for start in range(0, found[-1].end if found else 0, step):
        pieces.append(Band(start, step, WORST[0]))
    for band in found:
        for place in range(band.start // step, (band.end - 1) // step + 1):
            if WORST.index(band.state) > WORST.index(pieces[place].state):
                pieces[place] = Band(place * step, step, band.state)
    joined: list[Band] = []
    for piece in pieces:
        if joined and joined[-1].state == piece.state:
            joined[-1] = Band(joined[-1].start, joined[-1].length + step, piece.state)
        else:
            joined.append(piece)
    return joined


def sum_counts(minutes: Iterable[MinuteCounts]) -> BreakerCounts:
    rows = list(minutes)
    return BreakerCounts(**{name: sum(getattr(one, name) for one in rows) for name in COUNTERS})


def _minute_index(one: MinuteCounts, first: datetime) -> int:
    return (one.minute - first) // MINUTE
