"""The error budget that is left, and when it will be spent."""

from datetime import datetime, timedelta

from .minutes import end_of

DIGITS = 6
"""Decimals of a ratio or burn rate in a response."""


def remaining_ratio(burn_rate: float | None) -> float | None:
    """Return the share of the budget that is left, given the burn rate over the whole period.

    Negative if the budget is overspent, None if the burn rate is unknown.
    """
    return None if burn_rate is None else round_ratio(1 - burn_rate)


def exhausts_at(
    remaining_ratio: float | None, burn_rate: float | None, period: int, at_minute: int
) -> datetime | None:
    """Return when the budget of a period (minutes) will be spent at the present burn rate.

    None if that is unknown, if the budget would outlast the period, or if nothing is left.
    """
    if remaining_ratio is None or burn_rate is None or burn_rate <= 1 or remaining_ratio <= 0:
        return None
    lasts = timedelta(minutes=remaining_ratio * period / burn_rate)
    return (end_of(at_minute) + lasts).replace(microsecond=0)


def round_ratio(number: float) -> float:
    """Return a ratio rounded to `DIGITS` decimals, without a negative zero."""
    return round(number, DIGITS) + 0.0
