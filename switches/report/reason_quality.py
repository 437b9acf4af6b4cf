"""How little a reason says to the next person, and why one thinks so. Pure.

The house refuses reasons that say nothing (`core.reasons`); this ranks the ones it took. Every
weakness is something that whoever reads the report can see for themselves. A script without capital
letters is not blamed for naming nothing: there, one can't tell.
"""

import functools
import re
from dataclasses import dataclass

from controlplane.core import reasons

SHORT_COLUMNS = 28
LISTED_FROM = 50
"""Points from which a reason is worth a second look: any two weaknesses, or an empty one."""

_NUMBER = re.compile(r"\d")
# OpenAI, INC, checkout-api, billing_db, api.example, k8s; not the capital that begins a sentence.
# Thousands of reasons are looked at, most of which have nothing that could begin a name.
_HINT = re.compile(r"[-_./:0-9A-Z]")
_NAME = re.compile(r"\B[A-Z]|[A-Za-z][-_./:]\w|\w[-_./:][A-Za-z]|[A-Za-z]\d|(?<=[^.!?\s])\s[A-Z]\w")
_CASED = re.compile(r"[A-Za-z]{3}")
# Arabic and its neighbours, India, South-East Asia, Japan and China, Korea.
_UNCASED = re.compile(
    "[\u0590-\u08ff\u0900-\u0dff\u0e00-\u0fff\u1100-\u11ff\u3040-\u9fff\uac00-\ud7ff]"
)


@dataclass(frozen=True)
class Weakness:
    """`points` is 0 for a reason that says it all; `why` names what is missing."""

    points: int
    why: tuple[str, ...]


def glance(reason: str) -> Weakness:
    """What can be said without reading word for word: cheap enough for thousands."""
    found = []
    if not _NUMBER.search(reason):
        found.append((30, "no number: no count, rate, time or incident"))
    if not _names_something(reason) and _CASED.search(reason) and not _UNCASED.search(reason):
        found.append((30, "no component named"))
    # Columns are never fewer than half of what a text of wide characters has.
    if len(reason) < SHORT_COLUMNS and (have := reasons.columns(reason)) < SHORT_COLUMNS:
        found.append((25, f"short: {have} columns"))
    return Weakness(sum(points for points, _ in found), tuple(why for _, why in found))


@functools.lru_cache(maxsize=1024)
def weakness(reason: str) -> Weakness:
    """The same, and whether the words themselves are empty, which costs more time to find out."""
    seen = glance(reason)
    if not reasons.is_vague(reason):
        return seen
    return Weakness(
        seen.points + 100, ("says neither what is wrong, nor where, nor why", *seen.why)
    )


def _names_something(reason: str) -> bool:
    return _HINT.search(reason, 1) is not None and _NAME.search(reason) is not None
