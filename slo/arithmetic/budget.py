"""What is left of an error budget, and when it will be spent."""

from datetime import datetime, timedelta

from .minutes import end_of

DIGITS = 6
"""Of a share or a burn rate that is told."""


def remaining_ratio(burn_rate: float | None) -> float | None:
    """What is left of the budget if the whole period burned at this rate: below zero if more than
    all of it is spent, null if nobody knows."""
    return None if burn_rate is None else round_ratio(1 - burn_rate)


def exhausts_at(
    remaining_ratio: float | None, burn_rate: float | None, period: int, at_minute: int
) -> datetime | None:
    """When the budget of a period (minutes) will be spent, if it goes on burning at this rate.

    Null if nobody knows, if it would last longer than the period, or if nothing is left of it.
    """
    if remaining_ratio is None or burn_rate is None or burn_rate <= 1 or remaining_ratio <= 0:
        return None
    lasts = timedelta(minutes=remaining_ratio * period / burn_rate)
    return (end_of(at_minute) + lasts).replace(microsecond=0)


def round_ratio(number: float) -> float:
    """As it is shown: a few decimals, and no negative zero."""
    return round(number, DIGITS) + 0.0
