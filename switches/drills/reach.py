"""Whom a drill reaches, and how far it has got: marked instances and what they say they apply."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controlplane.core.instances import chosen
from controlplane.core.instances.queries import Head
from switches.drills.patterns import ALL, Marks
from switches.models import DrillMark, Publication

NAMED = 20


@dataclass(frozen=True)
class Reach:
    """How far the change of a drill has got among the marked instances that were there.

    Those are what was heard from within 30 s before it, or after it; who has fallen silent since
    and never said that it applies it is a straggler: it may have broken.
    `stragglers` are at most 20 of those that do not say they apply it, those furthest behind first.
    Delays are milliseconds from the commit.
    """

    instances: int
    applied: int
    p50_ms: int | None
    p99_ms: int | None
    stragglers: tuple[str, ...]

    @property
    def by_everybody(self) -> bool:
        return 0 < self.instances == self.applied

    def as_dict(self) -> dict[str, Any]:
        return {
            "instances": self.instances,
            "applied": self.applied,
            "p50_ms": self.p50_ms,
            "p99_ms": self.p99_ms,
            "stragglers": list(self.stragglers),
        }


def patterns() -> list[str]:
    """The marks as they stand, each as it was written."""
    return list(DrillMark.objects.values_list("pattern", flat=True))


def marks() -> Marks:
    """The marks as they stand."""
    return Marks.of(patterns())


def there(marked: Marks, now: datetime) -> list[str]:
    """The marked instances that were heard from within 30 s."""
    return chosen.there(marked.names, marked.services, now)


def of(marked: Marks, version: int, since: datetime) -> Reach:
    """How far the change of `version` has got, among `marked`, that was committed at `since`."""
    row = Publication.objects.get(pk=1)
    told = chosen.said(
        marked.names,
        marked.services,
        version=version,
        since=since,
        head=Head(row.epoch, row.version),
    )
    behind = [one.id for one in told if one.applied < version]
    took = [one.after_ms for one in told if one.applied >= version and one.after_ms is not None]
    return Reach(
        instances=len(told),
        applied=len(told) - len(behind),
        p50_ms=chosen.nearest_rank(took, 0.5),
        p99_ms=chosen.nearest_rank(took, 0.99),
        stragglers=tuple(behind[:NAMED]),
    )


def counts(wanted: Sequence[str], now: datetime) -> dict[str, int]:
    """How many instances that were heard from within 30 s match each pattern."""
    found = there(Marks.of(wanted), now)
    names, services = set(found), Counter(name.partition("/")[0] for name in found)
    return {
        pattern: services[service] if instance == ALL else int(pattern in names)
        for pattern in wanted
        for service, _, instance in (pattern.partition("/"),)
    }
