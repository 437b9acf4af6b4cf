"""Time slices: minutes counted as good or bad by their own share of good events. Pure.

A minute is good if its share of good events is at least the slice target. Minutes without events
do not count.
"""

from collections.abc import Sequence
from decimal import Decimal

from .windows import CounterValues

TOLERANCE = 1e-9
"""Relative rounding error that is allowed where a minute's counts are fractions."""


def count_slices(counts: Sequence[CounterValues], slice_target: Decimal) -> list[CounterValues]:
    """Convert cumulative counters at ascending minutes to cumulative numbers of slices.

    The first counters are the baseline, so the result begins with zero slices. `covered` stays.
    """
    numerator, denominator = slice_target.as_integer_ratio()
    good_slices = slices = 0
    found: list[CounterValues] = []
    good_before, total_before = (counts[0].good, counts[0].total) if counts else (0.0, 0.0)
    for good, total, covered in counts:
        total_here, good_here = total - total_before, good - good_before
        good_before, total_before = good, total
        if total_here > 0:
            slices += 1
            good_slices += is_good_slice(good_here, total_here, numerator, denominator)
        found.append(CounterValues(float(good_slices), float(slices), covered))
    return found


def is_good_slice(good: float, total: float, numerator: int, denominator: int) -> bool:
    """Return True if good/total is at least numerator/denominator; exact for whole counts."""
    if good.is_integer() and total.is_integer():
        return int(good) * denominator >= int(total) * numerator
    return good * denominator >= total * numerator * (1 - TOLERANCE)
