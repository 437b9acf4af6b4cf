"""How it is now, above a runbook: what apps have to say of the trouble that it is about.

Each app registers functions in its module `sections`; the page asks those of its runbook.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.module_loading import autodiscover_modules


@dataclass(frozen=True)
class Line:
    """One thing as it is now; `tone` is bad, warn, good or nothing, `path` the page about it."""

    said: str
    tone: str = ""
    path: str = ""
    since: datetime | None = None


Source = Callable[[datetime], Sequence[Line]]

_registered: dict[str, list[Source]] = defaultdict(list)


def of(slug: str) -> Callable[[Source], Source]:
    """Register what is to be said above the runbook of this name."""

    def register(source: Source) -> Source:
        _registered[slug].append(source)
        return source

    return register


def lines(slug: str, now: datetime) -> list[Line]:
    """What there is to say above a runbook, in the order in which it was registered."""
    autodiscover_modules("sections")
    return [line for source in _registered.get(slug, []) for line in source(now)]
