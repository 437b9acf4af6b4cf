"""Parsers of the fields of pushed entries; ValueErrors have messages for people. Pure."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from slo.arithmetic.boots import PRESENCE_BOOT

MAX_EDGES = 100
MAX_NUMBER = 2**53
"""The largest integer that every JSON reader represents exactly; sums stay exact too."""
MAX_SOURCE_LENGTH = 200
NUMBERS = (int, float)
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_EDGE = re.compile(r"\d{1,16}(?:\.\d{1,9})?(?:[eE][+-]?\d{1,2})?", re.ASCII)

Buckets = tuple[tuple[float, float], ...]
"""Buckets of a histogram, ascending: upper edge in milliseconds, and number of events up to it."""
Moments = dict[str, datetime]
"""Cache of parsed times by text, because most points of a request have the same time."""


def parse_moment(value: Any, moments: Moments | None = None) -> datetime:
    moments = {} if moments is None else moments
    if isinstance(value, str):
        if value in moments:
            return moments[value]
        if _TIME.fullmatch(value):
            try:
                moments[value] = datetime.fromisoformat(value.upper()).astimezone(UTC)
                return moments[value]
            except (ValueError, OverflowError):
                pass
    raise ValueError("Must be a time in RFC 3339, such as 2026-11-21T02:11:00Z.")


def parse_count(value: Any) -> float:
    if type(value) not in NUMBERS or not 0 <= value <= MAX_NUMBER:
        raise ValueError("Must be a number from 0 to 2^53.")
    return float(value)


def text_parser(longest: int, *, empty: bool = True) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if not isinstance(value, str) or len(value) > longest or "\0" in value:
            raise ValueError(f"Must be a string of at most {longest} characters, without U+0000.")
        if not value and not empty:
            raise ValueError("Must not be empty.")
        return value

    return check


def parse_boot(value: Any) -> str:
    if value == PRESENCE_BOOT:
        raise ValueError("This name is reserved. Use another one.")
    return text_parser(MAX_SOURCE_LENGTH)(value)


def pattern_parser(pattern: re.Pattern[str], message: str) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise ValueError(message)
        return value

    return check


def parse_buckets(value: Any) -> Buckets:
    """Parse a histogram: cumulative counts by upper edge, the last of which must be infinite."""
    if not isinstance(value, dict) or not 0 < len(value) <= MAX_EDGES:
        raise ValueError(f"Must be an object of 1 to {MAX_EDGES} counts by their upper edges.")
    edges: dict[float, float] = {}
    for text, count in value.items():
        edge = parse_edge(text)
        if edge in edges:
            raise ValueError(f"The edge {text} is listed twice.")
        if type(count) not in NUMBERS or not 0 <= count <= MAX_NUMBER:
            raise ValueError(f"The count at {text} must be a number from 0 to 2^53.")
        edges[edge] = float(count)
    ordered = sorted(edges.items())
    if ordered[-1][0] != float("inf"):
        raise ValueError("Must contain the count of all events, at +Inf.")
    for (_, fewer), (edge, count) in pairwise(ordered):
        if count < fewer:
            shown = "+Inf" if edge == float("inf") else f"{edge:g}"
            raise ValueError(f"Must be cumulative: fewer events are at {shown} than before it.")
    return tuple(ordered)


def parse_edge(text: str) -> float:
    if text == "+Inf":
        return float("inf")
    edge = float(text) if _EDGE.fullmatch(text) else 0.0
    if not 0 < edge <= MAX_NUMBER:
        raise ValueError("Its edges must be numbers of milliseconds above 0, or +Inf.")
    return edge
