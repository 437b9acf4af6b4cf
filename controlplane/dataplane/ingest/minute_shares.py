"""The shares of a report's counts that fall in each minute."""

from collections.abc import Sequence

MINUTE_SECONDS = 60
MAX_LOOKBACK = 60
"""Most minutes that one report is spread over; counts of earlier minutes are left out."""


def spread_by_minute(
    since: float, until: float, counts: Sequence[int]
) -> list[tuple[int, Sequence[int]]]:
    """Return the part of `counts` that falls in each minute; the parts add up exactly.

    The times are in Unix seconds, and a minute is their quotient by 60.
    """
    last = int(until // MINUTE_SECONDS)
    first = min(last, int(since // MINUTE_SECONDS))
    if first == last:
        return [(last, counts)]
    length = until - since
    result: list[tuple[int, Sequence[int]]] = []
    for minute in range(max(first, last - MAX_LOOKBACK + 1), last + 1):
        begins = max(since, minute * MINUTE_SECONDS) - since
        ends = min(until, (minute + 1) * MINUTE_SECONDS) - since
        share = [int(n * ends / length) - int(n * begins / length) for n in counts]
        if any(share):
            result.append((minute, share))
    return result
