"""Numbers of dependencies that are reported and not, for the board and the weekly report."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef, Q

from breakers.models import BreakerState, Dependency, Minute
from breakers.states.evidence import PRESENT_STATES, evidence_values
from controlplane.core.configuration.samples import read_loading_times
from controlplane.core.sql import fetch_all

REPORTING_COUNTS = """
    count(*) AS known,
    count(*) FILTER (WHERE reported) AS reported,
    count(*) FILTER (
        WHERE NOT reported AND criticality = 'critical' AND NOT id = ANY(%(samples)s)
    ) AS in_the_dark,
    count(*) FILTER (WHERE id = ANY(%(samples)s)) AS unused_samples
"""
"""SELECT list of the fields of `ReportingCounts`, for dependencies with a column `reported`."""
_COUNTS = f"""
    SELECT {REPORTING_COUNTS} FROM (
        SELECT id, criticality, reports.dependency_id IS NOT NULL AS reported
        FROM breakers_dependency LEFT JOIN (
            SELECT dependency_id FROM ({PRESENT_STATES}) present
            GROUP BY dependency_id HAVING bool_or(fresh)
        ) reports ON reports.dependency_id = id
        WHERE removed_at IS NULL
    ) dependencies
"""  # noqa: S608


@dataclass(frozen=True)
class ReportingCounts:
    """Numbers of dependencies by whether an instance reported their breakers.

    `known` counts all dependencies, `reported` those with a report within 30 s. `unused_samples`
    are samples that were never reported; `in_the_dark` are other critical dependencies without a
    report within 30 s.
    """

    known: int
    reported: int
    in_the_dark: int
    unused_samples: int

    @property
    def silent(self) -> int:
        """Dependencies without a report within 30 s, except for unused samples."""
        return self.known - self.reported - self.unused_samples


def load_reporting_counts(now: datetime) -> ReportingCounts:
    """Return the counts of all dependencies. Makes at most three queries."""
    samples = find_unused_samples(read_loading_times("dependency"))
    ((*counts,),) = fetch_all(_COUNTS, {**evidence_values((), now), "samples": samples})
    return ReportingCounts(*counts)


def find_unused_samples(loaded: Mapping[str, datetime]) -> list[int]:
    """Return the ids of unchanged samples that no instance ever reported.

    `loaded` are the times when samples were loaded, by name.
    """
    if not loaded:
        return []
    rows = Dependency.objects.registered().select_named(loaded).exclude(was_reported())
    found = rows.only("caller", "callee", "changed_at")
    return [one.pk for one in found if one.changed_at == loaded[one.name]]


def was_reported() -> Q:
    """Return the condition that a report of a dependency's breaker is known.

    States of instances that are gone are deleted, and minutes after their retention. Totals
    prove older reports; without trips and fallbacks, nothing does.
    """
    of_dependency = {"dependency": OuterRef("pk")}
    states, minutes = (model.objects.filter(**of_dependency) for model in (BreakerState, Minute))
    lasting = Q(trips_total__gt=0) | Q(fallback_total__gt=0)
    return lasting | Q(Exists(states)) | Q(Exists(minutes))
