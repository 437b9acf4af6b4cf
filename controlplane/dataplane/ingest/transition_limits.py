"""Limits on the transitions in one report, which is truncated rather than refused. Pure.

An instance that could not report for long has many transitions, and must be able to report.
"""

from collections.abc import Mapping
from typing import Any

MAX_PER_SOURCE = 100
"""Most transitions of one breaker; the last ones by number are kept."""
MAX_TOTAL = 2000
"""Most transitions of one report, so that parsing doesn't delay other requests."""

Document = Mapping[str, Any]


def bounded(document: Document) -> tuple[Document, int]:
    """Return the report with transitions above the limits removed, and their number.

    Malformed parts are left for the validator to refuse.
    """
    breakers = document.get("breakers")
    if not isinstance(breakers, list):
        return document, 0
    numbers = [_count(one) for one in breakers]
    most = MAX_PER_SOURCE
    if sum(min(number, most) for number in numbers) > MAX_TOTAL:
        most = max(1, MAX_TOTAL // sum(number > 0 for number in numbers))
    dropped = sum(max(0, number - most) for number in numbers)
    if not dropped:
        return document, 0
    less = [
        {**one, "transitions": _last(one["transitions"], most)} if number > most else one
        for one, number in zip(breakers, numbers, strict=True)
    ]
    return {**document, "breakers": less}, dropped


def _count(breaker: Any) -> int:
    steps = breaker.get("transitions") if isinstance(breaker, dict) else None
    return len(steps) if isinstance(steps, list) else 0


def _last(steps: list[Any], most: int) -> list[Any]:
    return sorted(steps, key=_number)[-most:]


def _number(step: Any) -> float:
    """Return the transition's number; one without sorts last, so that the validator sees it."""
    number = step.get("n") if isinstance(step, dict) else None
    return number if type(number) is int else float("inf")
