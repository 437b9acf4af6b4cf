"""Rating of the reasons given for engaging switches, for the weekly report.

:mod:`controlplane.core.reasons` refuses empty reasons; these rules rate accepted ones. Reasons in
scripts without capital letters are not checked for names.
"""

import functools
import re
from dataclasses import dataclass

from controlplane.core import reasons

SHORT_COLUMNS = 28
MIN_LISTED_POINTS = 50
"""Minimum points of a listed reason: any two weaknesses, or vague words."""

_NUMBER = re.compile(r"\d")
# OpenAI, INC, checkout-api, billing_db, api.example, k8s; not the capital that begins a sentence.
# Quick test first: most reasons have no character that could begin a name.
_HINT = re.compile(r"[-_./:0-9A-Z]")
_NAME = re.compile(r"\B[A-Z]|[A-Za-z][-_./:]\w|\w[-_./:][A-Za-z]|[A-Za-z]\d|(?<=[^.!?\s])\s[A-Z]\w")
_CASED = re.compile(r"[A-Za-z]{3}")
# Scripts without capitals: Arabic, Indic, South-East Asian, Chinese, Japanese, Korean.
_UNCASED = re.compile(
    "[\u0590-\u08ff\u0900-\u0dff\u0e00-\u0fff\u1100-\u11ff\u3040-\u9fff\uac00-\ud7ff]"
)


@dataclass(frozen=True)
class ReasonWeakness:
    """The weaknesses of a reason: `points` (0 for none) and explanations."""

    points: int
    why: tuple[str, ...]


def assess_quickly(reason: str) -> ReasonWeakness:
    """Return a reason's weaknesses that need no word lookup, fast enough for many reasons."""
    weaknesses = []
    if not _NUMBER.search(reason):
        weaknesses.append((30, "no number: no count, rate, time or incident"))
    names_something = _HINT.search(reason, 1) is not None and _NAME.search(reason) is not None
    if not names_something and _CASED.search(reason) and not _UNCASED.search(reason):
        weaknesses.append((30, "no component named"))
    # Test the length first; counting columns is slower.
    if len(reason) < SHORT_COLUMNS and (have := reasons.count_columns(reason)) < SHORT_COLUMNS:
        weaknesses.append((25, f"short: {have} columns"))
    return ReasonWeakness(
        sum(points for points, _ in weaknesses), tuple(why for _, why in weaknesses)
    )


@functools.lru_cache(maxsize=1024)
def assess(reason: str) -> ReasonWeakness:
    """Return all weaknesses of a reason, including vague words, which take longer to find."""
    quick = assess_quickly(reason)
    if not reasons.is_vague(reason):
        return quick
    return ReasonWeakness(
        quick.points + 100, ("says neither what is wrong, nor where, nor why", *quick.why)
    )
