"""The span of a plot, as its URL says."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from slo.arithmetic.minutes import MINUTES_A_DAY, end_of, last_ended

RANGES = {"6h": 360, "24h": MINUTES_A_DAY, "7d": 7 * MINUTES_A_DAY, "30d": 30 * MINUTES_A_DAY}
USUAL = "24h"
MIN_MINUTES, MAX_MINUTES = 10, 92 * MINUTES_A_DAY
OLDEST = timedelta(days=400)


@dataclass(frozen=True)
class PlotSpan:
    """From the end of minute `first` up to the end of `last`.

    `name` is one of `RANGES`, empty for a custom span.
    """

    name: str
    first: int
    last: int

    @property
    def since(self) -> datetime:
        return end_of(self.first)

    @property
    def until(self) -> datetime:
        return end_of(self.last)


def parse_span(given: Any, now: datetime) -> PlotSpan:
    """Parse `range=24h`, or `from` and `to` in Unix seconds.

    Invalid input means the last day; too short or long spans are cut.
    """
    ended = last_ended(now)
    begin, end = _seconds(given.get("from", "")), _seconds(given.get("to", ""))
    oldest = last_ended(now - OLDEST)
    if begin is not None and end is not None and begin < end:
        last = min(ended, max(-(-end // 60), oldest + MIN_MINUTES))
        first = max(begin // 60, last - MAX_MINUTES, oldest)
        return PlotSpan("", min(first, last - MIN_MINUTES), last)
    name = given.get("range", "")
    name = name if name in RANGES else USUAL
    return PlotSpan(name, ended - RANGES[name], ended)


def _seconds(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 12 else None
