"""How many steps of its breakers a report may tell: it is never refused for them. Pure.

Whoever could not report for long has many to tell, and must be able to.
"""

from collections.abc import Mapping
from typing import Any

MAX_PER_SOURCE = 100
"""Of one breaker: the last ones, by number."""
MAX_TOTAL = 2000
"""Of a report: what is read without holding anybody up."""

Document = Mapping[str, Any]


def bounded(document: Document) -> tuple[Document, int]:
    """A report as it came, with so many steps at most, and how many it had besides.

    Whatever has no shape yet is left alone: whoever reads it says so.
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
    """One without a number is the last of all, so that it is read, and found to be wrong."""
    number = step.get("n") if isinstance(step, dict) else None
    return number if type(number) is int else float("inf")
