"""Instances marked for drills, and counts of those that acknowledged a drill's changes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from controlplane.core.instances import exports
from controlplane.core.instances.queries import Head
from switches.models import DrillMark, Publication

from .patterns import ALL, Marks

MAX_NAMED = 20


@dataclass(frozen=True)
class MarkedEffect:
    """Counts of marked instances that acknowledged a published change of a drill.

    `instances` counts those that reported since 30 s before the change and did not stop cleanly;
    `applied` of them acknowledged it. `stragglers` names up to 20 of the others, the furthest
    behind first. Delays (`p50_ms`, `p99_ms`) are in milliseconds after the commit.
    """

    instances: int
    applied: int
    p50_ms: int | None
    p99_ms: int | None
    stragglers: list[str]

    @property
    def by_everybody(self) -> bool:
        return 0 < self.instances == self.applied


def list_patterns() -> list[str]:
    return list(DrillMark.objects.values_list("pattern", flat=True))


def read_marks() -> Marks:
    return Marks.from_patterns(list_patterns())


def list_reporting_instances(marked: Marks, now: datetime) -> list[str]:
    """Return the names of reporting instances that are marked."""
    return exports.list_reporting_instances(marked.names, marked.services, now)


def list_choices(now: datetime, limit: int) -> list[tuple[str, str]]:
    """Return up to `limit` patterns with labels: whole services, then reporting instances."""
    names = exports.list_all_reporting_instances(now, limit)
    counts = Counter(name.partition("/")[0] for name in names)
    services = [
        (f"{service}/{ALL}", f"all of {service}: {count:,}") for service, count in counts.items()
    ]
    return [*services, *((name, "") for name in names)][:limit]


def measure_effect(marked: Marks, version: int, since: datetime) -> MarkedEffect:
    """Return counts of marked instances that acknowledged `version`, published at `since`."""
    row = Publication.objects.get(pk=1)
    reports = exports.load_statuses(
        marked.names,
        marked.services,
        version=version,
        since=since,
        head=Head(row.epoch, row.version),
    )
    behind_ids = [report.id for report in reports if report.applied < version]
    applied = (report for report in reports if report.applied >= version)
    delays_ms = [report.after_ms for report in applied if report.after_ms is not None]
    return MarkedEffect(
        instances=len(reports),
        applied=len(reports) - len(behind_ids),
        p50_ms=exports.nearest_rank(delays_ms, 0.5),
        p99_ms=exports.nearest_rank(delays_ms, 0.99),
        stragglers=behind_ids[:MAX_NAMED],
    )


def count_instances(marks: Sequence[DrillMark], now: datetime) -> list[DrillMark]:
    """Set each mark's `instances` to its number of reporting instances, and return the marks."""
    counts = count_by_pattern([mark.pattern for mark in marks], now)
    for mark in marks:
        mark.instances = counts[mark.pattern]
    return list(marks)


def count_by_pattern(patterns: Sequence[str], now: datetime) -> dict[str, int]:
    """Return the number of reporting instances that match each pattern, by pattern."""
    present = list_reporting_instances(Marks.from_patterns(patterns), now)
    names, services = set(present), Counter(name.partition("/")[0] for name in present)
    return {
        pattern: services[service] if instance == ALL else int(pattern in names)
        for pattern in patterns
        for service, _, instance in (pattern.partition("/"),)
    }
